// SPDX-License-Identifier: Apache-2.0

package toolbox

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// fakeRoot is a repository with one nested module, and an empty cache.
func fakeRoot(t *testing.T, sum string) string {
	t.Helper()
	root := t.TempDir()
	dir := ModuleDir(root, Modules[0])
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"go.mod": "module x\n", "go.sum": sum} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	return root
}

func TestPathOfAToolThatIsMissingThenBuilt(t *testing.T) {
	root := fakeRoot(t, "a")
	deep := filepath.Join(root, "rules", "cmd")
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(deep)
	if _, err := Path("promtool"); !errors.Is(err, ErrNotBuilt) {
		t.Fatalf("missing tool: got error %v, want ErrNotBuilt", err)
	}
	dir, err := CacheDir(root, Modules[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, binary("promtool")), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	got, err := Path("promtool")
	if err != nil || filepath.Base(got) != binary("promtool") {
		t.Fatalf("built tool: got %q, %v", got, err)
	}
	if _, err := Path("hammer"); err == nil || errors.Is(err, ErrNotBuilt) {
		t.Errorf("unknown tool: got error %v, want one that names it", err)
	}
}

func TestAChangedGoSumMeansANewFolder(t *testing.T) {
	a, err := CacheDir(fakeRoot(t, "a"), Modules[0])
	if err != nil {
		t.Fatal(err)
	}
	b, err := CacheDir(fakeRoot(t, "b"), Modules[0])
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Base(a) == filepath.Base(b) {
		t.Errorf("go.sum changed, folder is still %s", filepath.Base(a))
	}
}

func TestOutsideARepository(t *testing.T) {
	t.Chdir(t.TempDir())
	if _, err := Path("promtool"); err == nil {
		t.Error("outside a repository: got no error")
	}
}
