// SPDX-License-Identifier: Apache-2.0

// Command tagged prints the packages of the module that have test files with the given build tag, so that a tagged
// run does not repeat every untagged test.
package main

import (
	"fmt"
	"go/build/constraint"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: tagged TAG")
		os.Exit(2)
	}
	dirs, err := tagged(".", os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "tagged:", err)
		os.Exit(1)
	}
	for _, d := range dirs {
		fmt.Println("./" + filepath.ToSlash(d))
	}
}

// tagged lists the folders below root that hold a _test.go file which needs the tag. Nested modules are not entered.
func tagged(root, tag string) ([]string, error) {
	var dirs []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root:
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil || strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" {
				return filepath.SkipDir
			}
		case strings.HasSuffix(path, "_test.go"):
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if needs(string(text), tag) && !slices.Contains(dirs, filepath.Dir(path)) {
				dirs = append(dirs, filepath.Dir(path))
			}
		}
		return nil
	})
	return dirs, err
}

// needs says that the file is left out unless the tag is given.
func needs(text, tag string) bool {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "package ") {
			return false
		}
		if expr, err := constraint.Parse(line); constraint.IsGoBuild(line) && err == nil {
			all := func(with bool) bool {
				return expr.Eval(func(t string) bool { return t != tag || with })
			}
			return all(true) && !all(false)
		}
	}
	return false
}
