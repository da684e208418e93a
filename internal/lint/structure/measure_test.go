package structure

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestMeasure: a and b use each other, by a method and by a field; c only uses them, and
// what another package uses of them is counted once.
func TestMeasure(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":    "module lunar\n\ngo 1.26\n",
		"p/a.go":    "package p\n\ntype A struct{ B *B }\n\nfunc (a *A) Twice() int { return 2 * a.B.size }\n",
		"p/b.go":    "package p\n\ntype B struct{ size int }\n\nfunc (b *B) a() *A { return &A{b} }\n",
		"p/c.go":    "package p\n\nfunc New() *A { return (&B{}).a() }\n\nfunc Spare() {}\n",
		"q/main.go": "package main\n\nimport \"lunar/p\"\n\nfunc main() { println(p.New().Twice() + p.New().Twice()) }\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := Load(dir, "./q")
	if err != nil {
		t.Fatal(err)
	}
	want := []Package{
		{Path: "lunar/p", Files: 3, Lines: 15, CycleFiles: 2, CycleLines: 10, Exported: 2},
		{Path: "lunar/q", Files: 1, Lines: 5},
	}
	if found := tree.Measure(); !slices.Equal(found, want) {
		t.Errorf("found %+v, expected %+v", found, want)
	}
}
