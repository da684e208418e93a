package refusals

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestReasonsAreCounted: every reason has a name and a meaning of its own, and the server
// counts it somewhere.
func TestReasonsAreCounted(t *testing.T) {
	used := make(map[string]bool)
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "refusals" {
					used[s.Sel.Name] = true
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	f, err := parser.ParseFile(token.NewFileSet(), "reasons.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	declared := 0
	for name, o := range f.Scope.Objects {
		if o.Kind == ast.Con && ast.IsExported(name) {
			declared++
			if !used[name] {
				t.Errorf("%s is counted nowhere", name)
			}
		}
	}
	if declared != len(Reasons()) {
		t.Errorf("%d reasons are declared, %d are told", declared, len(Reasons()))
	}
	names := make(map[string]bool)
	for _, r := range Reasons() {
		if r.String() == "" || r.Means() == "" || names[r.String()] {
			t.Errorf("reason %d: %q, %q", r, r.String(), r.Means())
		}
		names[r.String()] = true
	}
}
