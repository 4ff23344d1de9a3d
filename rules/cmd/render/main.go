// SPDX-License-Identifier: Apache-2.0

// Command render writes the rule files of every profile below rules/ from the templates. It is run from the root of
// the repository: go run ./rules/cmd/render. With -stories it also writes the rule tests into a folder, to be read or
// to be run with promtool by hand.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/trainyard/trainyard/rules"
	"github.com/trainyard/trainyard/rules/stories"
)

func main() {
	dir := flag.String("dir", "rules", "folder of the rules in this repository")
	tests := flag.String("stories", "", "write promtool's unit tests into this folder too")
	flag.Parse()
	if err := run(*dir, *tests); err != nil {
		fmt.Fprintln(os.Stderr, "render rules:", err)
		os.Exit(1)
	}
}

func run(root, tests string) error {
	if _, err := os.Stat(filepath.Join(root, "templates")); err != nil {
		return fmt.Errorf("run this from the root of the repository: %w", err)
	}
	for _, p := range rules.Profiles {
		files, err := rules.Render(p)
		if err != nil {
			return err
		}
		for name, content := range files {
			if err := write(filepath.Join(root, p.Name, name), content); err != nil {
				return err
			}
		}
		if tests == "" {
			continue
		}
		dir, err := filepath.Abs(filepath.Join(root, p.Name))
		if err != nil {
			return fmt.Errorf("find the rules: %w", err)
		}
		content, err := stories.Render(p, dir, 1, stories.All(p))
		if err != nil {
			return err
		}
		if err := write(filepath.Join(tests, p.Name+".yaml"), content); err != nil {
			return err
		}
	}
	return nil
}

func write(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("make a folder for rules: %w", err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		return fmt.Errorf("write rules: %w", err)
	}
	fmt.Println(path)
	return nil
}
