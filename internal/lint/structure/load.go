package structure

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// Tree is a module's own packages, type-checked from source without their tests.
type Tree struct {
	Fset    *token.FileSet
	Sources []*Source // what is imported comes first
}

// Source is one package of a Tree.
type Source struct {
	Path  string
	Files []*ast.File
	Types *types.Package
	Info  *types.Info
}

// listed is what the go command says of a package.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles, CgoFiles       []string
	Imports                 []string
	Module                  *struct{ Main bool }
}

func (l *listed) own() bool { return l.Module != nil && l.Module.Main }

// Load type-checks the packages of the module in dir that the patterns name, and those
// that they import.
func Load(dir string, patterns ...string) (*Tree, error) {
	all, err := list(dir, append([]string{"-deps"}, patterns...))
	if err != nil {
		return nil, err
	}
	t := &Tree{Fset: token.NewFileSet()}
	packages, err := importsOf(dir, t.Fset, all)
	if err != nil {
		return nil, err
	}
	for _, l := range all {
		if !l.own() {
			continue
		}
		s, err := t.check(l, packages)
		if err != nil {
			return nil, err
		}
		packages.own[l.ImportPath] = s.Types
		t.Sources = append(t.Sources, s)
	}
	return t, nil
}

// list asks the go command.
func list(dir string, arguments []string) (all []*listed, err error) {
	cmd := exec.Command("go", append([]string{"list", "-tags", "rdma rbd", "-json=ImportPath,Dir,Export,GoFiles,CgoFiles,Imports,Module"}, arguments...)...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%v: %w", cmd.Args, err)
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		l := new(listed)
		if err := d.Decode(l); err == io.EOF {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
}

// imports finds a Tree's own packages, and others by what the compiler exports of them.
type imports struct {
	own    map[string]*types.Package
	others types.Importer
}

// Import implements types.Importer.
func (i imports) Import(path string) (*types.Package, error) {
	if p := i.own[path]; p != nil {
		return p, nil
	}
	return i.others.Import(path)
}

// importsOf has everything compiled that the module's own packages import from others.
func importsOf(dir string, fset *token.FileSet, all []*listed) (imports, error) {
	direct := []string{"-export", "--"}
	known := map[string]bool{"C": true, "unsafe": true}
	for _, l := range all {
		known[l.ImportPath] = known[l.ImportPath] || l.own()
	}
	for _, l := range all {
		for _, path := range l.Imports {
			if l.own() && !known[path] {
				known[path] = true
				direct = append(direct, path)
			}
		}
	}
	var others []*listed
	var err error
	if len(direct) > 2 { // without a package, it would be that of the directory
		others, err = list(dir, direct)
	}
	exports := map[string]string{}
	for _, l := range others {
		exports[l.ImportPath] = l.Export
	}
	lookup := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	return imports{map[string]*types.Package{}, importer.ForCompiler(fset, "gc", lookup)}, err
}

// check parses and type-checks one package.
func (t *Tree) check(l *listed, packages imports) (*Source, error) {
	s := &Source{Path: l.ImportPath, Info: &types.Info{
		Types:      map[ast.Expr]types.TypeAndValue{},
		Defs:       map[*ast.Ident]types.Object{},
		Uses:       map[*ast.Ident]types.Object{},
		Selections: map[*ast.SelectorExpr]*types.Selection{},
	}}
	for _, name := range append(l.GoFiles, l.CgoFiles...) {
		file, err := parser.ParseFile(t.Fset, filepath.Join(l.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		s.Files = append(s.Files, file)
	}
	var err error
	config := types.Config{Importer: packages, FakeImportC: true}
	if len(l.CgoFiles) > 0 {
		config.Error = func(error) {} // nothing is known of what is C's
	}
	s.Types, err = config.Check(l.ImportPath, t.Fset, s.Files, s.Info)
	if config.Error != nil {
		err = nil
	}
	return s, err
}
