package conf

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// Common is what the configurations of a cluster's nodes have in common: a text of its own,
// which is read together with that of each node. It does not change, and may be used by any
// number of goroutines.
type Common struct {
	src  *source
	text []byte
	root *ast.MappingNode // its places are behind commonLine
}

// commonSections are those that a Common may have. The others are of one machine.
var commonSections = []string{"auth-groups", "ceph", "discovery", "qos", "targets", "volumes"}

// nodeSections are the others.
var nodeSections = []string{"cache", "cluster", "log", "portal-groups", "server"}

// shareable are the paths of mappings that a node's text may have some keys of, and the Common
// others.
var shareable = []string{"", "auth-groups", "ceph", "discovery", "qos", "qos.capacities", "qos.groups", "targets", "volumes"}

// commonLine is behind the lines of all texts: the line of a place in a Common is that in
// its text and so many more.
const commonLine = 1 << 30

// ParseCommon reads the syntax of a Common, and refuses sections that are a node's own. What
// it says is checked where it is read with a node's text. The error holds every problem, as
// Errors.
func ParseCommon(name string, text []byte) (*Common, error) {
	text = withoutMark(text)
	d := newDecoder(name, text)
	c := &Common{src: d.src, text: text, root: &ast.MappingNode{}}
	root, ok := d.tree(text)
	if ok && !(node{ast: root}).missing() {
		if c.root, ok = mappingOf(root); !ok {
			d.add(Problem{File: name, Found: node{ast: root}.kind(), Expected: "a mapping with the keys " + strings.Join(commonSections, ", ")})
		}
	}
	if err := d.errors(); err != nil {
		return nil, err
	}
	for _, pair := range c.root.Values {
		key, ok := node{ast: pair.Key}.scalar()
		if !ok || !slices.Contains(commonSections, key) {
			d.failAt(placeOf(pair.Key.GetToken()), shownKey(key, slices.Concat(commonSections, nodeSections)), "a section that is not the cluster's", "one of "+strings.Join(commonSections, ", ")+"; each node has the others in its own file")
		}
	}
	moveBehind(c.root)
	return c, d.errors()
}

// Text is the whole of it. It must not be changed.
func (c *Common) Text() []byte { return c.text }

// moveBehind makes the places of a tree those of a Common.
func moveBehind(root ast.Node) {
	seen := map[*token.Position]bool{}
	ast.Walk(visit(func(n ast.Node) {
		if t := n.GetToken(); t != nil && !seen[t.Position] {
			seen[t.Position] = true
			t.Position.Line += commonLine
		}
	}), root)
}

// with is the tree of a node's text with what is common. nil: there is nothing common.
func (c *Common) with(own ast.Node) ast.Node {
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
func mix(path string, own, common *ast.MappingNode) *ast.MappingNode {
	out := *own
	out.Values = slices.Clone(own.Values)
	for _, pair := range common.Values {
		i := indexOf(own, pair.Key)
		if i < 0 {
			out.Values = append(out.Values, pair)
			continue
		}
		key, _ := node{ast: pair.Key}.scalar()
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
func mixedValues(path string, own, common ast.Node) (ast.Node, bool) {
	a, mapping := mappingOf(own)
	b, both := mappingOf(common)
	if mapping && both && slices.Contains(shareable, path) {
		return mix(path, a, b), true
	}
	rules, list := own.(*ast.SequenceNode)
	more, lists := common.(*ast.SequenceNode)
	if list && lists && path == "qos.rules" {
		all := *rules
		all.Values = slices.Concat(rules.Values, more.Values)
		return &all, true
	}
	return common, (node{ast: own}).missing() || sameValue(own, common)
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

// isCommon reports whether the value of a key is the Common's.
func (d *decoder) isCommon(path string) bool { return d.at[path].line > commonLine }

// validateCommon refuses volumes that each node would have for itself.
func (d *decoder) validateCommon(c *Config) {
	for i := range c.Volumes {
		v := &c.Volumes[i]
		if path := "volumes." + v.Name; d.isCommon(path) && !v.Clustered() {
			d.fail(path+".owners", "nothing in the cluster's configuration", "the nodes that may own the volume; a volume of one server is in that server's own file")
		}
	}
}

// within is the file and the place there of a position.
func (s *source) within(p position) (*source, position) {
	if p.line > commonLine {
		return s.common.src, position{p.line - commonLine, p.column}
	}
	return s, p
}

// tell says where a position is, for who knows that another one is in s.
func (s *source) tell(p position) string {
	file, at := s.within(p)
	if file == s {
		return fmt.Sprintf("line %d", at.line)
	}
	return fmt.Sprintf("line %d of %s", at.line, file.name)
}
