package conf

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// node is a YAML value and the path of the key that it belongs to.
type node struct {
	path string
	ast  ast.Node
	key  position // where the key stands; used when the value is missing
}

// setter reads a value into the place that it was made for.
type setter func(*decoder, node)

// fields are the keys that a mapping may have.
type fields map[string]setter

// decoder walks the syntax tree, fills the model and collects problems.
type decoder struct {
	src      *source
	at       map[string]position // the value of every key, by path
	problems []Problem
	warnings []Warning
	secrets  bool              // the file itself holds a secret
	shared   map[string]Access // what targets say for the rules that do not
}

// problem describes what stands at path, or at the nearest enclosing key that
// the file has.
func (d *decoder) problem(path, found, expected string) Problem {
	p := Problem{File: d.src.name, Key: path, Found: found, Expected: expected}
	pos, ok := d.at[path]
	for outer := path; !ok && outer != ""; {
		outer = enclosing(outer)
		pos, ok = d.at[outer]
	}
	if ok {
		p.Line, p.Column, p.Excerpt = pos.line, pos.column, d.src.excerpt(pos)
		p.Found = d.src.mask(pos.line, found)
	}
	return p
}

// enclosing cuts the last step of a path: a.b[1] -> a.b -> a.
func enclosing(path string) string {
	return path[:max(strings.LastIndexAny(path, ".["), 0)]
}

func (d *decoder) fail(path, found, expected string) {
	d.problems = append(d.problems, d.problem(path, found, expected))
}

func (d *decoder) warn(path, found, expected string) {
	d.warnings = append(d.warnings, d.problem(path, found, expected))
}

// place is where n's value begins, or its key if it has none.
func (n node) place() position {
	if n.missing() {
		return n.key
	}
	first := n.ast
	switch v := first.(type) {
	case *ast.MappingNode:
		if !v.IsFlowStyle && len(v.Values) > 0 {
			first = v.Values[0].Key
		}
	case *ast.MappingValueNode:
		first = v.Key
	}
	return placeOf(first.GetToken())
}

func placeOf(t *token.Token) position {
	return position{t.Position.Line, t.Position.Column}
}

// missing reports whether nothing follows the key.
func (n node) missing() bool {
	_, null := n.ast.(*ast.NullNode)
	return n.ast == nil || null
}

// describe is how a message quotes a value: scalars as written, others by
// their kind.
func (n node) describe() string {
	if n.missing() {
		return "nothing"
	}
	if text, ok := n.scalar(); ok {
		return fmt.Sprintf("%q", text)
	}
	switch n.ast.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode:
		return "a YAML anchor or alias"
	case *ast.TagNode:
		return "a YAML tag"
	}
	return "a " + strings.ToLower(n.ast.Type().String())
}

// scalar is the text of a plain, quoted or block scalar as it was written, so
// that 010 and 1e3 are not taken for other numbers.
func (n node) scalar() (string, bool) {
	switch v := n.ast.(type) {
	case *ast.StringNode:
		return v.Value, true
	case *ast.LiteralNode:
		return v.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return v.GetToken().Value, true
	}
	return "", false
}

// entries lists the keys of a mapping. Duplicates are reported and left out;
// no value counts as an empty mapping. It is false for anything else.
func (d *decoder) entries(n node, expected string) ([]node, bool) {
	if n.missing() {
		return nil, true
	}
	pairs, ok := n.ast.(ast.MapNode)
	if !ok {
		d.fail(n.path, n.describe(), expected)
		return nil, false
	}
	var out []node
	seen := map[string]int{}
	for it := pairs.MapRange(); it.Next(); {
		e, ok := d.entry(n, it.KeyValue())
		if !ok {
			continue
		}
		if line, again := seen[e.path]; again {
			d.failAt(e.key, e.path, "the key a second time", fmt.Sprintf("it once (first in line %d)", line))
			continue
		}
		seen[e.path] = e.key.line
		d.at[e.path] = e.place()
		out = append(out, e)
	}
	return out, true
}

// entry is one key and its value.
func (d *decoder) entry(n node, kv *ast.MappingValueNode) (node, bool) {
	at := placeOf(kv.Key.GetToken())
	name, ok := node{ast: kv.Key}.scalar()
	if !ok {
		d.failAt(at, n.path, node{ast: kv.Key}.describe()+" as a key", "a plain key; write values out where they are used")
		return node{}, false
	}
	path := name
	if n.path != "" {
		path = n.path + "." + name
	}
	return node{path, kv.Value, at}, true
}

// failAt reports a problem with a key rather than with its value.
func (d *decoder) failAt(at position, path, found, expected string) {
	d.problems = append(d.problems, Problem{d.src.name, at.line, at.column, path, d.src.mask(at.line, found), expected, d.src.excerpt(at)})
}

// mapping reads the known keys of n and reports the others. It is false if n
// is no mapping.
func (d *decoder) mapping(n node, known fields) bool {
	names := slices.Sorted(maps.Keys(known))
	entries, ok := d.entries(n, "a mapping with the keys "+strings.Join(names, ", "))
	for _, e := range entries {
		name := strings.TrimPrefix(e.path, n.path+".")
		if set, ok := known[name]; ok {
			set(d, e)
			continue
		}
		d.failAt(e.key, e.path, "an unknown key", suggestion(name, names))
	}
	return ok
}

// named reads a mapping from names that the user chose.
func (d *decoder) named(n node, valid func(string) bool, expected string, each func(name string, n node)) {
	entries, _ := d.entries(n, "a mapping from names to definitions")
	for _, e := range entries {
		name := strings.TrimPrefix(e.path, n.path+".")
		if !valid(name) {
			d.failAt(e.key, e.path, fmt.Sprintf("%q", name), expected)
		}
		each(name, e)
	}
}

// list reads a sequence.
func (d *decoder) list(n node, each func(n node)) {
	if n.missing() {
		return
	}
	seq, ok := n.ast.(*ast.SequenceNode)
	if !ok {
		d.fail(n.path, n.describe(), "a list")
		return
	}
	for i, value := range seq.Values {
		e := node{fmt.Sprintf("%s[%d]", n.path, i), value, placeOf(seq.Start)}
		d.at[e.path] = e.place()
		each(e)
	}
}

// given reports whether the file has the key.
func (d *decoder) given(path string) bool {
	_, ok := d.at[path]
	return ok
}

// has reports whether the mapping n has the key.
func (d *decoder) has(n node, key string) bool { return d.given(n.path + "." + key) }

// require reports a key that is not there.
func (d *decoder) require(n node, key, expected string) {
	if !d.has(n, key) {
		d.fail(n.path+"."+key, "nothing", expected)
	}
}
