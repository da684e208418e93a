package lint

import (
	"bytes"
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const (
	maxFileLines     = 600
	maxFunctionLines = 100 // tables, that is composite literals, do not count
)

func TestFileLength(t *testing.T) {
	for _, f := range goFiles(t) {
		if n := bytes.Count(f.text, []byte("\n")); n > maxFileLines {
			t.Errorf("%s: found %d lines, expected at most %d", f.path, n, maxFileLines)
		}
	}
}

func TestFunctionLength(t *testing.T) {
	for _, f := range goFiles(t) {
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if n := f.lines(fn) - tableLines(f, fn); n > maxFunctionLines {
				t.Errorf("%s:%d: %s has %d lines beside its tables, expected at most %d", f.path, f.line(fn), fn.Name.Name, n, maxFunctionLines)
			}
		}
	}
}

// tableLines counts the lines of the outermost composite literals.
func tableLines(f *goFile, fn *ast.FuncDecl) int {
	lines := 0
	ast.Inspect(fn, func(n ast.Node) bool {
		literal, ok := n.(*ast.CompositeLit)
		if ok {
			lines += f.lines(literal) - 1
		}
		return !ok
	})
	return lines
}

// TestExportedNamesAreDocumented: every exported name outside of tests and
// commands has a comment, its own or that of the group that it stands in.
func TestExportedNamesAreDocumented(t *testing.T) {
	for _, f := range goFiles(t) {
		if f.test || f.ast.Name.Name == "main" {
			continue
		}
		for _, d := range f.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && exportedReceiver(d) && d.Doc == nil {
					t.Errorf("%s:%d: %s has no doc comment", f.path, f.line(d), d.Name.Name)
				}
			case *ast.GenDecl:
				for _, name := range undocumented(d) {
					t.Errorf("%s:%d: %s has no doc comment", f.path, f.line(d), name)
				}
			}
		}
	}
}

// exportedReceiver reports whether a function is one, or a method of an
// exported type.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	exported := false
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && id.IsExported() {
			exported = true
		}
		return true
	})
	return exported
}

func undocumented(d *ast.GenDecl) []string {
	if d.Doc != nil || d.Tok == token.IMPORT {
		return nil
	}
	var names []string
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() && s.Doc == nil && s.Comment == nil {
				names = append(names, s.Name.Name)
			}
		case *ast.ValueSpec:
			for _, n := range s.Names {
				if n.IsExported() && s.Doc == nil && s.Comment == nil {
					names = append(names, n.Name)
				}
			}
		}
	}
	return names
}

// TestPackagesAreDocumented: every package says what it is for.
func TestPackagesAreDocumented(t *testing.T) {
	documented := map[string]bool{}
	for _, f := range goFiles(t) {
		if !f.test {
			documented[f.dir] = documented[f.dir] || f.ast.Doc != nil
		}
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("package %s has no package comment", dir)
		}
	}
}

// vague names say nothing of what a thing does. SAM has a task manager.
var vague = regexp.MustCompile(`(?i)(^|_|/)(utils?|common|helpers?|misc)(_|/|\.go|$)|handler|manager|helper|util$`)

func TestNames(t *testing.T) {
	for _, f := range goFiles(t) {
		if vague.MatchString(f.path) {
			t.Errorf("%s: a file or package name that says nothing", f.path)
		}
		for name := range declared(f.ast) {
			if vague.MatchString(name) && name != "TaskManager" {
				t.Errorf("%s: %s is a name that says nothing", f.path, name)
			}
		}
	}
}

// declared are the names of top-level functions and types.
func declared(file *ast.File) map[string]bool {
	names := map[string]bool{}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			names[d.Name.Name] = true
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if s, ok := spec.(*ast.TypeSpec); ok {
					names[s.Name.Name] = true
				}
			}
		}
	}
	return names
}

// unwanted texts, split so that this file does not hold them.
var unwanted = map[string]*regexp.Regexp{
	"an unfinished part":            regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`),
	"the host of a registry":        regexp.MustCompile(`proxy\.golang` + `\.org|sum\.golang` + `\.org|deb\.debian` + `\.org|pypi` + `\.org|goproxy` + `\.|GOPROXY` + `=`),
	"a path outside of the project": regexp.MustCompile(`/work` + `/|\.\./sha` + `red`),
	"a test skipped without reason": regexp.MustCompile(`\bt\.Skip(Now)?` + `\(\)`),
}

func TestTexts(t *testing.T) {
	for _, path := range allFiles(t) {
		if filepath.Base(path) == "go.sum" {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !isText(data) {
			continue
		}
		for what, pattern := range unwanted {
			if at := pattern.FindIndex(data); at != nil {
				line := 1 + bytes.Count(data[:at[0]], []byte("\n"))
				t.Errorf("%s:%d: found %s: %s", strings.TrimPrefix(path, root+"/"), line, what, data[at[0]:at[1]])
			}
		}
	}
}
