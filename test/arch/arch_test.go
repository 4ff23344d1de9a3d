// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

const root = "../.."

func same(path string) string { return path }

func TestWhoMayImportWhom(t *testing.T) {
	pkgs, err := list(root, "lab,tools", "./...")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range violations(pkgs, same) {
		t.Error(v)
	}
	for _, p := range pkgs {
		if !matches(p.ImportPath, pure) {
			continue
		}
		calls, err := impureCalls(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range calls {
			t.Errorf("%s: thinking code reads no clock and no unseeded randomness; pass them in", c)
		}
	}
}

// A deliberate violation must be found, or the test above proves nothing.
func TestAViolationIsFound(t *testing.T) {
	pkgs, err := list(root, "", "./test/arch/testdata/violation")
	if err != nil {
		t.Fatal(err)
	}
	pretend := func(path string) string {
		if strings.HasSuffix(path, "/testdata/violation") {
			return module + "actuator/decide"
		}
		return path
	}
	found := strings.Join(violations(pkgs, pretend), "\n")
	for _, want := range []string{"decide reaches net/http:", "decide reaches os/exec:"} {
		if !strings.Contains(found, want) {
			t.Errorf("%q not found in:\n%s", want, found)
		}
	}
	for _, p := range pkgs {
		if !strings.HasSuffix(p.ImportPath, "/testdata/violation") {
			continue
		}
		calls, err := impureCalls(p)
		if err != nil {
			t.Fatal(err)
		}
		if len(calls) != 2 {
			t.Errorf("impure calls found: %v; want time.Now and rand.IntN", calls)
		}
	}
}

// Every build tag of the tree is either given by a Make target that CI runs or names a platform.
func TestEveryBuildTagIsRun(t *testing.T) {
	makefile, err := os.ReadFile(root + "/Makefile")
	if err != nil {
		t.Fatal(err)
	}
	run := map[string]bool{}
	for _, m := range regexp.MustCompile(`-tags[ =]([a-z_,]+)`).FindAllStringSubmatch(string(makefile), -1) {
		for tag := range strings.SplitSeq(m[1], ",") {
			run[tag] = true
		}
	}
	tags, err := testTags(root)
	if err != nil {
		t.Fatal(err)
	}
	for tag, file := range tags {
		platform := tag == runtime.GOOS || tag == runtime.GOARCH || tag == "unix" || tag == "darwin" || tag == "windows" || tag == "ignore"
		if !platform && !run[tag] {
			t.Errorf("build tag %q (%s) is given by no Make target", tag, file)
		}
	}
	if len(tags) < 2 {
		t.Errorf("only %d build tags found: the search is broken", len(tags))
	}
}
