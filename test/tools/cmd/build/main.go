// SPDX-License-Identifier: Apache-2.0

// Command build makes the foreign programs that tests and demo run, from sources pinned in the nested modules beside
// it, one after the other, into the user's cache. What is there already is not built again. It installs nothing
// outside the cache folder that toolbox names.
//
//	go run ./test/tools/cmd/build [prometheus promtool alertmanager amtool golangci-lint]
//	go run ./test/tools/cmd/build -print golangci-lint     where a built tool is
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"time"

	"github.com/trainyard/trainyard/test/tools/toolbox"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "build tools:", err)
		os.Exit(1)
	}
}

// run builds the modules that hold the wanted tools; none named means all.
func run(ctx context.Context, tools []string) error {
	if len(tools) == 2 && tools[0] == "-print" {
		path, err := toolbox.Path(tools[1])
		if err == nil {
			fmt.Println(path)
		}
		return err
	}
	for _, tool := range tools {
		if _, ok := toolbox.Find(tool); !ok {
			return fmt.Errorf("tool %q: not one of the tools in test/tools/toolbox", tool)
		}
	}
	root, err := toolbox.Root()
	if err != nil {
		return err
	}
	for _, m := range toolbox.Modules {
		wanted := len(tools) == 0
		for _, t := range m.Tools {
			wanted = wanted || slices.Contains(tools, t.Name)
		}
		if !wanted {
			continue
		}
		if err := buildModule(ctx, root, m); err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
	}
	return nil
}

// buildModule builds all tools of a module into a folder beside the final one and renames it: the final folder is
// complete or absent. A lock makes a second run wait for the first and then find its work done.
func buildModule(ctx context.Context, root string, m toolbox.Module) error {
	final, err := toolbox.CacheDir(root, m)
	if err != nil {
		return err
	}
	if present(final) {
		fmt.Printf("%-13s present in %s\n", m.Name, final)
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(final), 0o755); err != nil {
		return fmt.Errorf("make the cache folder: %w", err)
	}
	unlock, err := lock(filepath.Join(filepath.Dir(final), "lock"))
	if err != nil {
		return err
	}
	defer unlock()
	if present(final) {
		fmt.Printf("%-13s present in %s (built meanwhile)\n", m.Name, final)
		return nil
	}

	start := time.Now()
	fmt.Printf("%-13s building into %s (minutes on the first run) ...\n", m.Name, final)
	work, err := os.MkdirTemp(filepath.Dir(final), m.Name+".tmp-")
	if err != nil {
		return fmt.Errorf("make a build folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }() // after the rename there is only a source copy left, or nothing
	source, err := sourceDir(ctx, root, m, filepath.Join(work, "source"))
	if err != nil {
		return err
	}
	out := filepath.Join(work, "bin")
	if err := os.Mkdir(out, 0o755); err != nil {
		return fmt.Errorf("make the output folder: %w", err)
	}
	args := append([]string{"build", "-o", out + string(filepath.Separator)}, m.Flags...)
	for _, t := range m.Tools {
		args = append(args, t.Package)
	}
	if err := goCommand(ctx, source, args...).Run(); err != nil {
		return fmt.Errorf("go build in %s: %w", source, err)
	}
	if err := os.Rename(out, final); err != nil {
		return fmt.Errorf("put the built tools in place: %w", err)
	}
	fmt.Printf("%-13s built in %s\n", m.Name, time.Since(start).Round(100*time.Millisecond))
	return nil
}

// sourceDir is the folder to build in: the nested module itself, or, where the published module lacks embedded files,
// a copy of that module with stubs for them.
func sourceDir(ctx context.Context, root string, m toolbox.Module, copyTo string) (string, error) {
	nested := toolbox.ModuleDir(root, m)
	if len(m.Stub) == 0 {
		return nested, nil
	}
	cmd := goCommand(ctx, nested, "mod", "download", "-json", m.Of)
	cmd.Stdout = nil
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("download %s: %w", m.Of, err)
	}
	var got struct{ Dir string }
	if err := json.Unmarshal(out, &got); err != nil || got.Dir == "" {
		return "", fmt.Errorf("download %s: no folder in go's answer %q: %w", m.Of, out, err)
	}
	if err := copyWritable(got.Dir, copyTo); err != nil {
		return "", fmt.Errorf("copy the source of %s: %w", m.Of, err)
	}
	for _, name := range m.Stub {
		path := filepath.Join(copyTo, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return "", fmt.Errorf("make the folder of a stub: %w", err)
		}
		if err := os.WriteFile(path, []byte("<!doctype html><title>no user interface in this build</title>\n"), 0o644); err != nil {
			return "", fmt.Errorf("write a stub: %w", err)
		}
	}
	return copyTo, nil
}

// copyWritable copies a folder of the module cache, where everything is read-only, to one that can be built in and
// removed.
func copyWritable(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		switch {
		case d.IsDir():
			return os.MkdirAll(target, 0o755)
		case !d.Type().IsRegular():
			return nil // a published module holds files and folders only
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, content, 0o644)
	})
}

// goCommand runs the Go tool in a folder, outside any workspace and with the pinned versions only.
func goCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd
}

func present(dir string) bool {
	_, err := os.Stat(dir)
	return !errors.Is(err, fs.ErrNotExist)
}
