package conf

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
)

// TestParts: a text that is parsed in parts has the keys, values and places of the
// whole, whatever their number.
func TestParts(t *testing.T) {
	texts := [][]byte{DefaultFile, bigFile(50), []byte("volumes:\n  # one\n  a: {x: 1}\n\n  b:\n    c: |\n      text: 1\n      d: 2\n  \"e\": [1,\n  2]\n  f:\n  g: 'x\n    y: 1'\nlog: {level: info}\n"),
		[]byte("a:\n  b:\n    c:\n      d: 1\n      e: 2\n      f:\n        g: 3\n        h: 4\n    i: 5\n  j:\n    k: 6\n    l: 7\n    k: 8\nm:\n  n:\n    o: 1\n")}
	files, _ := filepath.Glob("testdata/errors/*.yaml")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, data)
	}
	inParts := 0
	for _, text := range texts {
		whole, err := parseYAML(text, 1<<30)
		if err != nil || len(whole) != 1 {
			continue
		}
		for n := 1; n < 5; n++ {
			root, ok := parseParts(lexer.Tokenize(string(text)), n)
			if !ok {
				continue
			}
			inParts++
			if a, b := flat(whole[0]), flat(root); !reflect.DeepEqual(a, b) {
				t.Errorf("in parts of %d found\n%v\nas a whole\n%v\nof\n%s", n, b, a, text)
			}
		}
	}
	if inParts < 60 {
		t.Errorf("%d texts were parsed in parts, expected most", inParts)
	}
}

// TestDivided: no part has more entries of a mapping than are parsed together, on whatever
// level they are, so that the parser's work grows with their number.
func TestDivided(t *testing.T) {
	const most, luns = 8, 1000
	text := "targets:\n  a:\n    luns: {0: v}\n  b:\n    access:\n    - {luns: {0: v}}\n    luns:\n"
	for i := range luns {
		text += fmt.Sprintf("      %d: v%d\n", i, i)
	}
	parts := divided(lexer.Tokenize(text+"  c:\n    luns: {0: v}\n"), most)
	for _, part := range parts {
		if len(part) > 8*most {
			t.Errorf("found a part of %d tokens", len(part))
		}
	}
	if len(parts) < luns/most {
		t.Errorf("found %d parts", len(parts))
	}
}

// flat lists what the decoder sees of a tree.
func flat(n ast.Node) (all []string) {
	e := node{ast: n}
	text, _ := e.scalar()
	place := "nothing"
	if !e.missing() {
		place = fmt.Sprint(e.place())
	}
	all = []string{fmt.Sprintf("%s %s %q", place, e.kind(), text)}
	switch v := n.(type) {
	case ast.MapNode:
		for it := v.MapRange(); it.Next(); {
			all = append(append(all, flat(it.Key())...), flat(it.Value())...)
		}
	case *ast.SequenceNode:
		for _, e := range v.Values {
			all = append(all, flat(e)...)
		}
	}
	return all
}

// TestPartsAreSmall: no mapping of many entries reaches the YAML parser as a whole,
// in whatever section it is.
func TestPartsAreSmall(t *testing.T) {
	root, ok := parseParts(lexer.Tokenize(string(bigFile(3000))), partEntries)
	if !ok || len(root.Values) != 3 {
		t.Fatal("the text was not parsed in parts")
	}
	if volumes := root.Values[1].Value.(*ast.MappingNode).Values; len(volumes) != 3000 {
		t.Errorf("found %d volumes", len(volumes))
	}
	for i, text := range []string{"volumes", "targets"} {
		tokens, _ := entriesAt(lexer.Tokenize(string(bigFile(3000))), 1)
		if n := len(bodyOf(tokens[i+1])); n != []int{3000, 15}[i] {
			t.Errorf("%s: found %d entries", text, n)
		}
	}
}

// TestPlacesWithCRLF: the places of a file with Windows' line ends are those that an editor
// shows, behind comments as well.
func TestPlacesWithCRLF(t *testing.T) {
	const text = "# one\n# two\nvolumes:\n  # three\n  v: {type: ram, size: banana}\n"
	_, _, want := Parse("f", []byte(text))
	_, _, err := Parse("f", []byte(strings.ReplaceAll(text, "\n", "\r\n")))
	if want == nil || err == nil || err.Error() != want.Error() {
		t.Errorf("found %v, expected %v", err, want)
	}
}
