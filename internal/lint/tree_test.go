package lint

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// root is the module's directory as seen from this package.
const root = "../.."

// modules are the server's, that of its tools, and that of lunar-etcd.
var modules = []string{root, root + "/scripts", root + "/cluster/lunar-etcd"}

// goFile is a parsed source file.
type goFile struct {
	path string // from the module's root
	dir  string
	test bool
	text []byte
	fset *token.FileSet
	ast  *ast.File
}

// line is where a node stands, for messages.
func (f *goFile) line(n ast.Node) int { return f.fset.Position(n.Pos()).Line }

// lines is how many lines a node takes.
func (f *goFile) lines(n ast.Node) int {
	return f.fset.Position(n.End()).Line - f.fset.Position(n.Pos()).Line + 1
}

// files are all files of the tree that belong to the project, Go parsed.
var files = sync.OnceValues(func() (all []string, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "build" || d.Name() == "testdata" && strings.Contains(path, "fuzz")):
			return fs.SkipDir
		case d.Type().IsRegular() && d.Name() != ".git": // a file in a linked work tree
			all = append(all, path)
		}
		return nil
	})
	return all, err
})

func allFiles(t *testing.T) []string {
	t.Helper()
	all, err := files()
	if err != nil || len(all) == 0 {
		t.Fatalf("found %d files, error %v", len(all), err)
	}
	return all
}

// goFiles parses every Go file.
func goFiles(t *testing.T) []*goFile {
	t.Helper()
	var out []*goFile
	for _, path := range allFiles(t) {
		if !strings.HasSuffix(path, ".go") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, path, text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		rel := strings.TrimPrefix(path, root+"/")
		out = append(out, &goFile{
			path: rel, dir: filepath.Dir(rel), test: strings.HasSuffix(path, "_test.go"),
			text: text, fset: fset, ast: parsed,
		})
	}
	return out
}

// isText reports whether a file is text.
func isText(data []byte) bool { return !bytes.Contains(data[:min(len(data), 1024)], []byte{0}) }
