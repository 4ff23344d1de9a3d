// SPDX-License-Identifier: Apache-2.0

// Package toolbox knows the foreign programs that tests and demo run (Prometheus, Alertmanager, their command-line
// tools, the linter): which nested module pins each, and in which folder of the cache it lies once cmd/build has built
// it. It never builds and never downloads anything; who wants a tool that is missing is told the command to run.
package toolbox

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Module is one nested module below test/tools and the programs that are built from it.
type Module struct {
	Name  string // folder below test/tools
	Of    string // path of the module that holds the programs
	Tools []Tool
	// Flags of go build. They are part of the cache key, so that a changed flag means a new build.
	Flags []string
	// Stub lists files that the published module lacks and that its source embeds. A module with stubs is copied
	// before it is built, since the module cache is read-only.
	Stub []string
}

// Tool is one program of a Module.
type Tool struct {
	Name    string // name of the binary
	Package string // import path
}

// Modules is every nested module, in the order in which they are built: the ones that tests need first.
// Nothing is built with -trimpath: it would give each dependency a second entry in the build cache beside the one that
// the product's own build has made.
var Modules = []Module{
	{
		Name: "prometheus", Of: "github.com/prometheus/prometheus",
		Tools: []Tool{
			{"prometheus", "github.com/prometheus/prometheus/cmd/prometheus"},
			{"promtool", "github.com/prometheus/prometheus/cmd/promtool"},
		},
		// Targets come from files here: leaving the cloud discoveries out spares 250 packages.
		Flags: []string{"-ldflags=-s -w", "-tags=remove_all_sd"},
	},
	{
		Name: "alertmanager", Of: "github.com/prometheus/alertmanager",
		Tools: []Tool{
			{"alertmanager", "github.com/prometheus/alertmanager/cmd/alertmanager"},
			{"amtool", "github.com/prometheus/alertmanager/cmd/amtool"},
		},
		Flags: []string{"-ldflags=-s -w"},
		Stub:  []string{"ui/app/dist/elm/index.html", "ui/app/dist/mantine/index.html"},
	},
	{
		Name: "lint", Of: "github.com/golangci/golangci-lint/v2",
		Tools: []Tool{{"golangci-lint", "github.com/golangci/golangci-lint/v2/cmd/golangci-lint"}},
		Flags: []string{"-ldflags=-s -w"},
	},
	{
		Name: "helm", Of: "helm.sh/helm/v4",
		Tools: []Tool{{"helm", "helm.sh/helm/v4/cmd/helm"}},
		Flags: []string{"-ldflags=-s -w"},
	},
}

// ErrNotBuilt says that a tool is known but has not been built on this machine yet.
var ErrNotBuilt = errors.New("not built yet: run go run ./test/tools/cmd/build")

// Find returns the module that holds a tool.
func Find(tool string) (Module, bool) {
	for _, m := range Modules {
		for _, t := range m.Tools {
			if t.Name == tool {
				return m, true
			}
		}
	}
	return Module{}, false
}

// Path returns the absolute path of a built tool. The error is ErrNotBuilt (wrapped) when it has to be built first.
func Path(tool string) (string, error) {
	m, ok := Find(tool)
	if !ok {
		return "", fmt.Errorf("tool %q: not one of the tools in test/tools/toolbox", tool)
	}
	root, err := Root()
	if err != nil {
		return "", err
	}
	dir, err := CacheDir(root, m)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, binary(tool))
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("tool %s: %w %s", tool, ErrNotBuilt, tool)
	} else if err != nil {
		return "", fmt.Errorf("look for tool %s: %w", tool, err)
	}
	return path, nil
}

// CacheDir is where the tools of a module lie. The folder's name is a hash of all that decides what is built: the
// nested go.mod and go.sum, the Go version, the platform and the build flags.
func CacheDir(root string, m Module) (string, error) {
	cache, err := os.UserCacheDir() // $XDG_CACHE_HOME on Unix
	if err != nil {
		return "", fmt.Errorf("find the cache folder for tools: %w", err)
	}
	h := sha256.New()
	fmt.Fprintln(h, runtime.Version(), runtime.GOOS, runtime.GOARCH, m.Flags)
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(ModuleDir(root, m), name))
		if err != nil {
			return "", fmt.Errorf("read what pins %s: %w", m.Name, err)
		}
		fmt.Fprintf(h, "%s %d\n%s", name, len(content), content)
	}
	return filepath.Join(cache, "trainyard", "tools", m.Name+"-"+hex.EncodeToString(h.Sum(nil))[:16]), nil
}

// ModuleDir is the folder of a nested module's go.mod.
func ModuleDir(root string, m Module) string {
	return filepath.Join(root, "test", "tools", m.Name)
}

// Root finds the repository from the working folder: tests run in the folder of their package, programs anywhere
// inside the checkout.
func Root() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "test", "tools", Modules[0].Name, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("find the repository: no folder above %s holds test/tools", start)
		}
	}
}

func binary(tool string) string {
	if runtime.GOOS == "windows" {
		return tool + ".exe"
	}
	return tool
}
