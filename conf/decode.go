package conf

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

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
	more     int // problems beyond maxProblems
	warnings []Warning
	secrets  bool                  // the file itself holds a secret
	draft    bool                  // the file may have Withheld in place of secrets
	shared   map[string]Access     // what targets say for the rules that do not
	groupOf  map[string]*AuthGroup // by name, while rules that join objects are applied
	masked   map[string]string     // how paths are shown that have names which are not
}

// problem describes what stands at path, or at the nearest enclosing key that
// the file has.
func (d *decoder) problem(path, found, expected string) Problem {
	p := Problem{File: d.src.name, Key: d.shown(path), Found: found, Expected: expected}
	pos, ok := d.at[path]
	for outer := path; !ok && outer != ""; {
		outer = enclosing(outer)
		pos, ok = d.at[outer]
	}
	if ok {
		d.placed(&p, pos)
	}
	return p
}

// placed tells where a problem is.
func (d *decoder) placed(p *Problem, at position) {
	file, at := d.src.within(at)
	p.File, p.Line, p.Column = file.name, at.line, at.column
}

// shown is a path without names that are not shown.
func (d *decoder) shown(path string) string {
	for outer := path; outer != ""; outer = enclosing(outer) {
		if mask, ok := d.masked[outer]; ok {
			return mask + path[len(outer):]
		}
	}
	return path
}

// enclosing cuts the last step of a path: a.b[1] -> a.b -> a.
func enclosing(path string) string {
	return path[:max(strings.LastIndexAny(path, ".["), 0)]
}

// maxProblems is how many problems are told. A text that is no configuration at all has
// one in each line, and nobody reads them.
const maxProblems = 100

func (d *decoder) add(p Problem) {
	if d.full() {
		d.more++
		return
	}
	d.problems = append(d.problems, p)
}

// full reports whether further problems are only counted: nothing needs to be made of them.
func (d *decoder) full() bool { return len(d.problems) == maxProblems }

// errors are the problems in the order of the file, nil if there are none.
func (d *decoder) errors() error {
	if len(d.problems) == 0 {
		return nil
	}
	all := Errors(inOrder(d.problems))
	if d.more > 0 {
		all = append(all, Problem{File: d.src.name, Found: fmt.Sprintf("%d more problems", d.more), Expected: "none"})
	}
	return all
}

func (d *decoder) fail(path, found, expected string) {
	if d.full() {
		d.more++
		return
	}
	d.add(d.problem(path, found, expected))
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

// describe is how a message tells of a value: scalars as quote lets them be
// shown, others by their kind.
func (n node) describe() string {
	if n.missing() {
		return "nothing"
	}
	if text, ok := n.scalar(); ok {
		if isSecretive(n.path) {
			return notShown(text)
		}
		return quote(text)
	}
	return n.kind()
}

// kind is what a value is, and says nothing of what it has.
func (n node) kind() string {
	if n.missing() {
		return "nothing"
	}
	if _, ok := n.scalar(); ok {
		return "text"
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

// entries lists the keys of a mapping. Duplicates are reported, by what shown
// makes of their names, and left out; no value counts as an empty mapping. It is
// false for anything else, which the caller reports.
func (d *decoder) entries(n node, shown func(name string) string) ([]node, bool) {
	if n.missing() {
		return nil, true
	}
	pairs, ok := n.ast.(ast.MapNode)
	if !ok {
		return nil, false
	}
	var out []node
	seen := map[string]position{}
	for it := pairs.MapRange(); it.Next(); {
		e, ok := d.entry(n, it.KeyValue())
		if !ok {
			continue
		}
		if first, again := seen[e.path]; again && d.full() {
			d.more++
			continue
		} else if again {
			d.failAt(e.key, below(n.path, shown(n.step(e))), "the key a second time", fmt.Sprintf("it once (first in %s)", d.src.tell(first)))
			continue
		}
		seen[e.path] = e.key
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
		d.failAt(at, n.path, node{ast: kv.Key}.kind()+" as a key", "a plain key; write values out where they are used")
		return node{}, false
	}
	return node{below(n.path, name), kv.Value, at}, true
}

// below is the path of a key.
func below(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// step is the last step of the path of an entry of n.
func (n node) step(e node) string { return strings.TrimPrefix(e.path, n.path+".") }

// failAt reports a problem with a key rather than with its value.
func (d *decoder) failAt(at position, path, found, expected string) {
	p := Problem{Key: d.shown(path), Found: found, Expected: expected}
	d.placed(&p, at)
	d.add(p)
}

// mapping reads the known keys of n and reports the others. It is false if n
// is no mapping.
func (d *decoder) mapping(n node, known fields) bool {
	names := sync.OnceValue(func() []string { return slices.Sorted(maps.Keys(known)) })
	shown := func(name string) string { return shownKey(name, names()) }
	entries, ok := d.entries(n, shown)
	if !ok {
		d.fail(n.path, n.kind(), "a mapping with the keys "+strings.Join(names(), ", "))
	}
	for _, e := range entries {
		name := n.step(e)
		if set, ok := known[name]; ok {
			set(d, e)
			continue
		}
		if d.full() {
			d.more++
			continue
		}
		d.failAt(e.key, below(n.path, shown(name)), "an unknown key", suggestion(name, names()))
	}
	return ok
}

// What the definition of a named object may be.
func aMapping(n node) bool          { _, ok := n.ast.(ast.MapNode); return ok }
func aMappingOrNothing(n node) bool { return n.missing() || aMapping(n) }
func aScalar(n node) bool           { _, ok := n.scalar(); return ok }

// naming says what names in a mapping are, and what they may name.
type naming struct {
	valid    func(name string) bool
	expected string
	defined  func(n node) bool // otherwise each reports a problem
}

// named reads a mapping from names that the user chose. What is no name, or names
// nothing that could be a definition, is not shown: it goes by its place among the
// others, in brackets.
func (d *decoder) named(n node, want naming, each func(name string, n node)) {
	number := 0
	entries, ok := d.entries(n, func(string) string { return unnamed })
	if !ok {
		d.fail(n.path, n.kind(), "a mapping from names to definitions")
	}
	for _, e := range entries {
		number++
		name := n.step(e)
		valid := want.valid(name)
		if !valid {
			d.failAt(e.key, n.path, "a key that is no such name", want.expected)
		}
		if !valid || !want.defined(e) && !quotable(name) {
			name = placeholder(number)
			e.path = below(n.path, name)
			d.at[e.path] = e.place()
		}
		if isSecretive(n.path) && !quotable(name) {
			d.masked[e.path] = below(n.path, placeholder(number))
		}
		each(name, e)
	}
}

// placeholder is how the object of a place is called whose name is not shown.
// Names cannot look like that.
func placeholder(number int) string { return fmt.Sprintf("(%d)", number) }

func isPlaceholder(name string) bool { return strings.HasPrefix(name, "(") }

// list reads a sequence.
func (d *decoder) list(n node, each func(n node)) {
	if n.missing() {
		return
	}
	seq, ok := n.ast.(*ast.SequenceNode)
	if !ok {
		d.fail(n.path, n.kind(), "a list, such as [ONE] or [ONE, TWO]")
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
