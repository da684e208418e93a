package structure

import (
	"go/token"
	"go/types"
	"maps"
	"slices"
)

// Package is the measure of one package, without its tests.
type Package struct {
	Path       string
	Files      int
	Lines      int
	CycleFiles int // of the largest cycle
	CycleLines int
	Exported   int // names, methods and fields that other packages use
}

// Share is the percentage of the package's lines that are in the largest cycle.
func (p Package) Share() float64 { return 100 * float64(p.CycleLines) / float64(max(p.Lines, 1)) }

// Measure measures every package, in the order of their paths.
func (t *Tree) Measure() (all []Package) {
	exported := t.exported()
	for _, s := range t.Sources {
		p := Package{Path: s.Path, Files: len(s.Files), Exported: exported[s.Types]}
		g := graph{edges: t.dependencies(s)}
		for _, f := range s.Files {
			p.Lines += t.lines(f.Pos())
		}
		for _, cycle := range g.cycles() {
			lines := 0
			for _, f := range cycle {
				lines += f.LineCount()
			}
			if lines > p.CycleLines {
				p.CycleFiles, p.CycleLines = len(cycle), lines
			}
		}
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b Package) int {
		if a.Path < b.Path {
			return -1
		}
		return 1
	})
	return all
}

func (t *Tree) lines(p token.Pos) int { return t.Fset.File(p).LineCount() }

// dependencies says which files of a package use what the others declare: types,
// functions, variables, constants, methods and fields.
func (t *Tree) dependencies(s *Source) map[*token.File][]*token.File {
	found := map[*token.File]map[*token.File]bool{}
	for _, f := range s.Files {
		found[t.Fset.File(f.Pos())] = map[*token.File]bool{}
	}
	for id, object := range s.Info.Uses {
		if object.Pkg() != s.Types || !object.Pos().IsValid() {
			continue
		}
		if from, to := t.Fset.File(id.Pos()), t.Fset.File(object.Pos()); from != to {
			found[from][to] = true
		}
	}
	edges := map[*token.File][]*token.File{}
	for from, to := range found {
		edges[from] = slices.Collect(maps.Keys(to))
	}
	return edges
}

// exported counts the exported objects of each package that others of the tree use.
func (t *Tree) exported() map[*types.Package]int {
	own, seen, count := map[*types.Package]bool{}, map[types.Object]bool{}, map[*types.Package]int{}
	for _, s := range t.Sources {
		own[s.Types] = true
		for _, object := range s.Info.Uses {
			object = origin(object)
			if object.Exported() && own[object.Pkg()] && object.Pkg() != s.Types && !seen[object] {
				seen[object] = true
				count[object.Pkg()]++
			}
		}
	}
	return count
}

// origin is the generic function or field that one was made of.
func origin(object types.Object) types.Object {
	switch o := object.(type) {
	case *types.Func:
		return o.Origin()
	case *types.Var:
		return o.Origin()
	}
	return object
}
