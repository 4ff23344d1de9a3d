// SPDX-License-Identifier: Apache-2.0

// Command reference writes docs/metrics.md from the catalogue. Run it from the root of the repository.
package main

import (
	"log"
	"os"
	"path/filepath"

	"github.com/trainyard/trainyard/exporter/catalog"
)

func main() {
	log.SetFlags(0)
	path := filepath.Join("docs", "metrics.md")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		log.Fatalf("write the metrics reference: %v", err)
	}
	if err := os.WriteFile(path, []byte(catalog.Reference()), 0o644); err != nil {
		log.Fatalf("write the metrics reference: %v", err)
	}
}
