package conf

import (
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// Joint is what the configurations of a cluster's nodes have in common: a text of its own,
// which is read together with that of each node. It does not change, and may be used by any
// number of goroutines.
type Joint struct {
	src  *source
	text []byte
	root *ast.MappingNode // its places are behind jointLine
}

// jointSections are those that a Joint may have. The others are of one machine.
var jointSections = []string{"auth-groups", "ceph", "discovery", "qos", "targets", "volumes"}

// nodeSections are the others.
var nodeSections = []string{"cache", "cluster", "log", "portal-groups", "server"}

// shareable are the paths of mappings that a node's text may have some keys of, and the Joint
// others.
var shareable = []string{"", "auth-groups", "ceph", "discovery", "qos", "qos.capacities", "qos.groups", "targets", "volumes"}

// ParseJoint reads the syntax of a Joint, and refuses sections that are a node's own. What
// it says is checked where it is read with a node's text. The error holds every problem, as
// Errors.
func ParseJoint(name string, text []byte) (*Joint, error) {
	text = withoutMark(text)
	d := newDecoder(name, text)
	c := &Joint{src: d.src, text: text, root: &ast.MappingNode{}}
	root, ok := d.tree(text)
	if ok && !(node{ast: root}).missing() {
		if c.root, ok = mappingOf(root); !ok {
			d.add(Problem{File: name, Found: node{ast: root}.kind(), Expected: "a mapping with the keys " + strings.Join(jointSections, ", ")})
		}
	}
	if err := d.errors(); err != nil {
		return nil, err
	}
	for _, pair := range c.root.Values {
		key, ok := node{ast: pair.Key}.scalar()
		if !ok || !slices.Contains(jointSections, key) {
			d.failAt(placeOf(pair.Key.GetToken()), shownKey(key, slices.Concat(jointSections, nodeSections)), "a section that is not the cluster's", "one of "+strings.Join(jointSections, ", ")+"; each node has the others in its own file")
		}
	}
	moveBehind(c.root)
	return c, d.errors()
}

// source is where its places are; nil: there is nothing.
func (c *Joint) source() *source {
	if c == nil {
		return nil
	}
	return c.src
}

// Empty reports that it says nothing: its file was cut off, or is another one.
func (c *Joint) Empty() bool { return len(c.root.Values) == 0 }

// Text is the whole of it. It must not be changed.
func (c *Joint) Text() []byte { return c.text }

// moveBehind makes the places of a tree those of a Joint.
func moveBehind(root ast.Node) {
	seen := map[*token.Position]bool{}
	ast.Walk(visit(func(n ast.Node) {
		if t := n.GetToken(); t != nil && !seen[t.Position] {
			seen[t.Position] = true
			t.Position.Line += jointLine
		}
	}), root)
}

// with is the tree of a node's text with what is joint. nil: there is nothing joint.
func (c *Joint) with(own ast.Node) ast.Node {
	if c == nil {
		return own
	}
	if (node{ast: own}).missing() {
		return c.root
	}
	if root, ok := mappingOf(own); ok {
		return mix("", root, c.root)
	}
	return own // which is none
}

// mix is a mapping with the keys of both. A key that says the same in both is there once; a
// key that does not is there twice, which is a mistake.
func mix(path string, own, joint *ast.MappingNode) *ast.MappingNode {
	out := *own
	out.Values = slices.Clone(own.Values)
	places := map[string]int{}
	for i, pair := range slices.Backward(own.Values) {
		if key, ok := (node{ast: pair.Key}).scalar(); ok {
			places[key] = i
		}
	}
	for _, pair := range joint.Values {
		key, named := node{ast: pair.Key}.scalar()
		i, there := places[key]
		if !named || !there {
			out.Values = append(out.Values, pair)
			continue
		}
		if value, ok := mixedValues(below(path, key), out.Values[i].Value, pair.Value); ok {
			both := *pair
			both.Value = value
			out.Values[i] = &both
			continue
		}
		out.Values = append(out.Values, pair)
	}
	return &out
}

// mixedValues is false for values that say different things.
func mixedValues(path string, own, joint ast.Node) (ast.Node, bool) {
	a, mapping := mappingOf(own)
	b, both := mappingOf(joint)
	if mapping && both && slices.Contains(shareable, path) {
		return mix(path, a, b), true
	}
	rules, list := own.(*ast.SequenceNode)
	more, lists := joint.(*ast.SequenceNode)
	if list && lists && path == "qos.rules" {
		all := *rules
		all.Values = slices.Concat(rules.Values, more.Values)
		return &all, true
	}
	return joint, (node{ast: own}).missing() || sameValue(own, joint)
}

// sameValue reports whether values say the same.
func sameValue(a, b ast.Node) bool {
	m, mapping := mappingOf(a)
	if n, both := mappingOf(b); mapping || both {
		return mapping && both && len(m.Values) == len(n.Values) && !slices.ContainsFunc(m.Values, func(pair *ast.MappingValueNode) bool {
			i := indexOf(n, pair.Key)
			return i < 0 || !sameValue(pair.Value, n.Values[i].Value)
		})
	}
	list, is := a.(*ast.SequenceNode)
	if other, both := b.(*ast.SequenceNode); is || both {
		return is && both && slices.EqualFunc(list.Values, other.Values, sameValue)
	}
	one, ok := node{ast: a}.scalar()
	other, ok2 := node{ast: b}.scalar()
	return ok && ok2 && one == other || node{ast: a}.missing() && node{ast: b}.missing()
}

// indexOf is where a mapping has a key; -1: nowhere.
func indexOf(m *ast.MappingNode, key ast.Node) int {
	name, ok := node{ast: key}.scalar()
	return slices.IndexFunc(m.Values, func(pair *ast.MappingValueNode) bool {
		other, ok2 := node{ast: pair.Key}.scalar()
		return ok && ok2 && name == other
	})
}

// mappingOf is false for what is no mapping.
func mappingOf(n ast.Node) (*ast.MappingNode, bool) {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n, true
	case *ast.MappingValueNode:
		return ast.Mapping(n.GetToken(), false, n), true
	}
	return nil, false
}
