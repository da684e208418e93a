package main

import (
	"cmp"
	"go/ast"
	"go/token"
	"go/types"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"lunar/internal/lint/structure"
)

// function is a declared function that was executed, or of which a literal was.
type function struct {
	source   *structure.Source
	object   *types.Func
	decl     *ast.FuncDecl
	literals []*types.Signature // of the literals in it that were executed
	calls    []*function        // in the order of the source, each once
	called   bool               // by name
}

func (f *function) name() string {
	name := f.object.Name()
	if receiver := f.object.Signature().Recv(); receiver != nil {
		name = types.TypeString(receiver.Type(), func(*types.Package) string { return "" }) + "." + name
	}
	return name
}

// executed finds the functions of the blocks and resolves the calls among them.
type executed struct {
	tree   *structure.Tree
	blocks map[string][]block // that were executed or not, by file
	counts counts

	byObject map[*types.Func]*function
	all      []*function
	values   map[*types.Func]bool // functions that are used otherwise than by a call
}

// resolve returns the functions that were executed, with their calls.
func resolve(tree *structure.Tree, c counts) []*function {
	e := &executed{tree: tree, counts: c, blocks: map[string][]block{}, byObject: map[*types.Func]*function{}, values: map[*types.Func]bool{}}
	for b := range c {
		e.blocks[b.file] = append(e.blocks[b.file], b)
	}
	for _, s := range tree.Sources {
		for _, file := range s.Files {
			e.declared(s, file)
		}
	}
	for _, f := range e.all {
		e.calls(f)
	}
	return e.all
}

// declared notes the functions of a file that were executed, and the values.
func (e *executed) declared(s *structure.Source, file *ast.File) {
	for _, d := range file.Decls {
		decl, ok := d.(*ast.FuncDecl)
		if !ok || decl.Body == nil {
			continue
		}
		f := &function{source: s, decl: decl, object: s.Info.Defs[decl.Name].(*types.Func)}
		ran := slices.ContainsFunc(e.blocks[e.file(s, decl.Pos())], func(b block) bool { return e.counts[b] && e.inside(b, decl) })
		ast.Inspect(decl, func(n ast.Node) bool {
			if l, ok := n.(*ast.FuncLit); ok && len(l.Body.List) > 0 && e.ran(s, l.Body.List[0].Pos()) {
				f.literals = append(f.literals, s.Info.TypeOf(l).(*types.Signature))
			}
			return true
		})
		if ran {
			e.byObject[f.object] = f
			e.all = append(e.all, f)
		}
	}
	called := map[*ast.Ident]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			called[callee(n)] = true
		case *ast.Ident:
			if f, ok := s.Info.Uses[n].(*types.Func); ok && !called[n] {
				e.values[f.Origin()] = true
			}
		}
		return true
	})
}

// callee is the name by which a call calls; nil if it has none.
func callee(call *ast.CallExpr) *ast.Ident {
	fun := ast.Unparen(call.Fun)
	switch index := fun.(type) {
	case *ast.IndexExpr:
		fun = index.X
	case *ast.IndexListExpr:
		fun = index.X
	}
	switch f := fun.(type) {
	case *ast.Ident:
		return f
	case *ast.SelectorExpr:
		return f.Sel
	}
	return nil
}

// file is how the compiler's counts name a file.
func (e *executed) file(s *structure.Source, p token.Pos) string {
	return path.Join(s.Path, filepath.Base(e.tree.Fset.Position(p).Filename))
}

func (e *executed) inside(b block, decl *ast.FuncDecl) bool {
	from, to := e.tree.Fset.Position(decl.Body.Pos()), e.tree.Fset.Position(decl.Body.End())
	return b.within(block{line: from.Line, column: from.Column, lastLine: to.Line, lastColumn: to.Column})
}

// ran reports whether the innermost block at a position was executed.
func (e *executed) ran(s *structure.Source, p token.Pos) bool {
	at := e.tree.Fset.Position(p)
	var innermost *block
	for _, b := range e.blocks[e.file(s, p)] {
		if b.holds(at.Line, at.Column) && (innermost == nil || b.within(*innermost)) {
			innermost = &b
		}
	}
	return innermost != nil && e.counts[*innermost]
}

// calls resolves the calls of a function that were executed.
func (e *executed) calls(f *function) {
	ast.Inspect(f.decl, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || !e.ran(f.source, call.Pos()) {
			return true
		}
		all, named := e.targets(f.source, call)
		for _, to := range all {
			if to != f && !slices.Contains(f.calls, to) {
				f.calls, to.called = append(f.calls, to), to.called || named
			}
		}
		return true
	})
}

// targets are the executed functions that a call may have called, and whether it names
// them.
func (e *executed) targets(s *structure.Source, call *ast.CallExpr) (all []*function, named bool) {
	if id := callee(call); id != nil {
		if object, ok := s.Info.Uses[id].(*types.Func); ok {
			return e.named(object.Origin()), true
		}
	}
	signature, ok := s.Info.TypeOf(call.Fun).Underlying().(*types.Signature)
	if !ok {
		return nil, false // a conversion
	}
	return e.matching(func(f *function) bool {
		return e.values[f.object] && identical(f.object.Signature(), signature) ||
			slices.ContainsFunc(f.literals, func(l *types.Signature) bool { return identical(l, signature) })
	}), false
}

// identical compares what a call passes: a method's value has no receiver.
func identical(a, b *types.Signature) bool {
	return types.Identical(a.Params(), b.Params()) && types.Identical(a.Results(), b.Results())
}

// named are the function itself, or of an interface's method those that implement it.
func (e *executed) named(object *types.Func) []*function {
	receiver := object.Signature().Recv()
	if receiver == nil || !types.IsInterface(receiver.Type()) {
		if f := e.byObject[object]; f != nil {
			return []*function{f}
		}
		return nil
	}
	wanted, ok := receiver.Type().Underlying().(*types.Interface)
	if !ok {
		return nil
	}
	return e.matching(func(f *function) bool {
		own := f.object.Signature().Recv()
		return own != nil && f.object.Name() == object.Name() && types.Implements(own.Type(), wanted)
	})
}

func (e *executed) matching(wanted func(*function) bool) (found []*function) {
	for _, f := range e.all {
		if wanted(f) {
			found = append(found, f)
		}
	}
	return found
}

// step is a function of a walk.
type step struct {
	Package, File, Function string
}

// walk is what one command goes through.
type walk struct {
	Name      string
	Functions int
	Files     int
	Packages  int
	Switches  int    // pairs of caller and called in different packages
	Steps     []step // callers first, in the order of the source
}

// newWalk tells of the functions in the order in which they call each other.
func newWalk(name string, tree *structure.Tree, all []*function) walk {
	w := walk{Name: name, Functions: len(all)}
	files, packages, seen := map[string]bool{}, map[string]bool{}, map[*function]bool{}
	var visit func(*function)
	visit = func(f *function) {
		if seen[f] {
			return
		}
		seen[f] = true
		file := filepath.Base(tree.Fset.Position(f.decl.Pos()).Filename)
		in := strings.TrimPrefix(f.source.Path, "lunar/")
		files[path.Join(in, file)], packages[in] = true, true
		w.Steps = append(w.Steps, step{in, file, f.name()})
		for _, to := range f.calls {
			if to.source != f.source {
				w.Switches++
			}
			visit(to)
		}
	}
	first := slices.Clone(all)
	slices.SortStableFunc(first, func(a, b *function) int { // who is called by nobody comes first
		return cmp.Compare(rank(a), rank(b))
	})
	for _, f := range first {
		visit(f)
	}
	w.Files, w.Packages = len(files), len(packages)
	return w
}

func rank(f *function) int {
	if f.called {
		return 1
	}
	return 0
}
