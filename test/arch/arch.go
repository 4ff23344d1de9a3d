// SPDX-License-Identifier: Apache-2.0

// Package arch says who may import whom. Its test holds the tree to the table; it never runs in the product.
package arch

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

const module = "github.com/trainyard/trainyard/"

// rule forbids packages below from to reach, directly or through others, any of the packages in never.
// A trailing "/..." matches the package and all below it.
type rule struct {
	from   []string
	never  []string
	except []string // packages in never that are allowed all the same
	direct bool     // judge only the imports that the package writes itself
	why    string
}

// pure are the nouns and the thinking packages.
var pure = under("actuator", "fleet", "topo", "traffic", "fault", "plan", "policy", "decide", "place", "preempt", "route", "sim", "guard", "verify", "flow")

var rules = []rule{
	{
		from: pure,
		never: []string{"net", "net/http/...", "os/exec", "log/slog", "k8s.io/...", "github.com/gosnmp/...", "github.com/osrg/...",
			"github.com/prometheus/client_golang/...", "github.com/prometheus/common/...", "github.com/vishvananda/..."},
		why: "a plan can be computed on a laptop and in a replay",
	},
	{
		from:   []string{module + "actuator/..."},
		never:  []string{module + "exporter/..."},
		except: []string{module + "exporter/catalog/..."},
		why:    "actuator and exporter talk through Prometheus only",
	},
	{
		from:  []string{module + "exporter/..."},
		never: []string{module + "actuator/...", "k8s.io/client-go/..."},
		why:   "an exporter reads; it never decides, and links no typed client-go (memory)",
	},
	{
		from:  []string{module + "exporter/catalog/..."},
		never: []string{"github.com/...", "golang.org/x/...", "net", "net/http/...", module + "exporter/source/..."},
		// the catalogue is our own module, and so are its children
		except: []string{module + "exporter/catalog/..."},
		why:    "the catalogue is the ground floor: standard library only",
	},
	{
		from:  []string{module + "actuator/act/...", module + "actuator/observe/..."},
		never: under("actuator", "flow", "loop", "decide", "guard"),
		why:   "adapters do what they are told",
	},
	{
		from:   []string{module + "actuator/..."},
		never:  []string{"github.com/osrg/gobgp/..."},
		except: []string{},
		direct: true,
		why:    "one door for change: only act/* writes routes",
	},
	{
		from:  []string{module + "test/sim/..."},
		never: under("actuator", "sim", "route", "topo"),
		why:   "a plant that shares the model's code would prove the model with itself",
	},
	{
		from:  []string{module + "exporter/...", module + "actuator/..."},
		never: []string{module + "test/..."},
		why:   "the product does not depend on its tests",
	},
}

// exempt are the packages that a rule's why does not touch: the doors themselves.
var exempt = map[string][]string{
	"one door for change: only act/* writes routes":            {module + "actuator/act/..."},
	"the catalogue is the ground floor: standard library only": {module + "exporter/catalog/cmd/..."},
}

func under(top string, names ...string) []string {
	for i, n := range names {
		names[i] = module + top + "/" + n + "/..."
	}
	return names
}

func matches(path string, patterns []string) bool {
	for _, p := range patterns {
		if base, ok := strings.CutSuffix(p, "/..."); ok && (path == base || strings.HasPrefix(path, base+"/")) || path == p {
			return true
		}
	}
	return false
}

// pkg is what `go list -json` says of a package.
type pkg struct {
	ImportPath string
	Dir        string
	Imports    []string
	Deps       []string
	GoFiles    []string
}

// list runs `go list -deps` in dir for the given patterns; only packages of our module are kept.
func list(dir string, tags string, patterns ...string) ([]pkg, error) {
	cmd := exec.Command("go", append([]string{"list", "-deps", "-tags", tags, "-json=ImportPath,Dir,Imports,Deps,GoFiles"}, patterns...)...)
	cmd.Dir = dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, stderr.String())
	}
	var pkgs []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		if strings.HasPrefix(p.ImportPath, module) {
			pkgs = append(pkgs, p)
		}
	}
}

// violations checks every package against every rule. as maps an import path to the one it is judged as.
func violations(pkgs []pkg, as func(string) string) []string {
	var bad []string
	for _, r := range rules {
		for _, p := range pkgs {
			path := as(p.ImportPath)
			if !matches(path, r.from) || matches(path, exempt[r.why]) {
				continue
			}
			reach := p.Deps
			if r.direct {
				reach = p.Imports
			}
			for _, d := range reach {
				if matches(d, r.never) && !matches(d, r.except) {
					bad = append(bad, fmt.Sprintf("%s reaches %s: %s", path, d, r.why))
				}
			}
		}
	}
	return bad
}

// impureCalls finds, by syntax tree, reads of the clock and unseeded randomness: imports alone would not show them.
func impureCalls(p pkg) ([]string, error) {
	var bad []string
	for _, f := range p.GoFiles {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, filepath.Join(p.Dir, f), nil, 0)
		if err != nil {
			return nil, err
		}
		names := map[string]string{} // local name -> import path
		for _, imp := range file.Imports {
			path, _ := strconv.Unquote(imp.Path.Value)
			name := strings.TrimSuffix(path[strings.LastIndex(path, "/")+1:], "v2")
			if path == "math/rand/v2" {
				name = "rand"
			}
			if imp.Name != nil {
				name = imp.Name.Name
			}
			names[name] = path
		}
		ast.Inspect(file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := sel.X.(*ast.Ident)
			if !ok {
				return true
			}
			if impure(names[x.Name], sel.Sel.Name) {
				bad = append(bad, fmt.Sprintf("%s: %s.%s", fset.Position(n.Pos()), x.Name, sel.Sel.Name))
			}
			return true
		})
	}
	return bad, nil
}

func impure(path, name string) bool {
	switch path {
	case "time":
		switch name {
		case "Now", "Since", "Until", "Sleep", "After", "Tick", "NewTimer", "NewTicker", "AfterFunc":
			return true
		}
	case "math/rand", "math/rand/v2":
		return !strings.HasPrefix(name, "New") && name != "Rand" && name != "Source" && name != "PCG" && name != "ChaCha8"
	case "crypto/rand":
		return true
	}
	return false
}

// testTags lists the build tags that stand in Go files below root, by the file that uses them.
func testTags(root string) (map[string]string, error) {
	tags := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != root || d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		for _, group := range file.Comments {
			for _, c := range group.List {
				if expr, ok := strings.CutPrefix(c.Text, "//go:build "); ok && c.Pos() < file.Package {
					for _, t := range strings.FieldsFunc(expr, func(r rune) bool { return strings.ContainsRune("!&|() ", r) }) {
						tags[t] = path
					}
				}
			}
		}
		return nil
	})
	return tags, err
}
