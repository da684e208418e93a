package main

import (
	"go/ast"
	"path/filepath"
	"slices"
	"testing"

	"lunar/internal/lint/structure"
)

const (
	serverText = `package server

type Store interface{ Read() int }

func Serve(s Store, done func(int)) {
	done(s.Read())
	if s == nil {
		Never()
	}
}

func Never() {}
`
	mainText = `package main

import "lunar/server"

type disk struct{}

func (disk) Read() int { return one() }

type spare struct{}

func (spare) Read() int { return 2 }

func one() int { return 1 }

func main() {
	server.Serve(disk{}, func(n int) { println(n) })
	var s server.Store = spare{}
	_ = s
}
`
)

// TestResolve: calls through interfaces and function values lead to what was executed,
// and to nothing else.
func TestResolve(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module lunar\n\ngo 1.26\n", "server/server.go": serverText, "main.go": mainText} {
		if err := write(filepath.Join(dir, name), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := structure.Load(dir, ".")
	if err != nil {
		t.Fatal(err)
	}
	c := counts{}
	for _, s := range tree.Sources {
		for _, f := range s.Files {
			for _, b := range bodies(f) {
				c[blockOf(tree, s, b)] = ran[enclosing(f, b)]
			}
		}
	}
	w := newWalk("", tree, resolve(tree, c))
	want := []step{
		{"lunar", "main.go", "main"}, {"server", "server.go", "Serve"},
		{"lunar", "main.go", "disk.Read"}, {"lunar", "main.go", "one"},
	}
	if !slices.Equal(w.Steps, want) {
		t.Errorf("found %v, expected %v", w.Steps, want)
	}
	// main calls Serve, which calls Read and the literal in main.
	if w.Functions != 4 || w.Files != 2 || w.Packages != 2 || w.Switches != 3 {
		t.Errorf("found %+v, expected 4 functions in 2 files and packages, with 3 switches", w)
	}
}

// ran are the functions whose bodies, and the literals in them, count as executed.
var ran = map[string]bool{"main": true, "Serve": true, "Read": true, "one": true}

// bodies are those of functions, literals and conditional statements.
func bodies(f *ast.File) (all []*ast.BlockStmt) {
	ast.Inspect(f, func(n ast.Node) bool {
		if b, ok := n.(*ast.BlockStmt); ok {
			all = append(all, b)
		}
		return true
	})
	return all
}

// enclosing names the function of a body. What is conditional, and what a spare store
// does, was not executed.
func enclosing(f *ast.File, body *ast.BlockStmt) (name string) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Pos() <= body.Pos() && body.End() <= n.End() {
				name = n.Name.Name
				if n.Recv != nil && n.Recv.List[0].Type.(*ast.Ident).Name == "spare" {
					name = "spare"
				}
			}
		case *ast.IfStmt:
			if n.Body == body {
				name = ""
			}
		}
		return true
	})
	return name
}

func blockOf(tree *structure.Tree, s *structure.Source, body *ast.BlockStmt) block {
	from, to := tree.Fset.Position(body.Pos()), tree.Fset.Position(body.End())
	return block{file: s.Path + "/" + filepath.Base(from.Filename), line: from.Line, column: from.Column, lastLine: to.Line, lastColumn: to.Column}
}
