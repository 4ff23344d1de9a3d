// SPDX-License-Identifier: Apache-2.0

// Command render writes the rule files of every profile below rules/ from the templates. It is run from the root of
// the repository: go run ./rules/cmd/render
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/trainyard/trainyard/rules"
)

func main() {
	if err := run("rules"); err != nil {
		fmt.Fprintln(os.Stderr, "render rules:", err)
		os.Exit(1)
	}
}

func run(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "templates")); err != nil {
		return fmt.Errorf("run this from the root of the repository: %w", err)
	}
	for _, p := range rules.Profiles {
		files, err := rules.Render(p)
		if err != nil {
			return err
		}
		for name, content := range files {
			path := filepath.Join(dir, p.Name, name)
			if err := os.WriteFile(path, content, 0o644); err != nil {
				return fmt.Errorf("write rules: %w", err)
			}
			fmt.Println(path)
		}
	}
	return nil
}
