package conf

import (
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"
)

// Memory parses texts most of which are the same, as changes of objects leave them: the
// lines of an object that were parsed before are not parsed again. It is for one goroutine
// at a time. The zero value knows nothing.
type Memory struct {
	Joint *Joint // is read together with the texts; nil: nothing

	parts map[string]*part // by text
	turn  int              // counts texts
}

// part is a key with its value, which have lines of their own.
type part struct {
	pair   *ast.MappingValueNode
	places []*token.Position
	line   int // by which the places go now: that of its first line
	turn   int // of the text that had it last
}

// Parse is Parse of a text of which is known where the lines of its sections begin, and
// those of the objects in them. In front of the first there is no key.
func (m *Memory) Parse(name string, data []byte, begins []int) (*Config, []Warning, error) {
	root, ok := m.tree(string(data), begins)
	if !ok {
		return ParseWith(name, data, m.Joint)
	}
	d, cfg := newDecoder(name, data), defaults()
	d.src.joint = m.Joint.source()
	d.config(node{ast: m.Joint.with(root)}, cfg)
	d.validate(cfg)
	if d.finish(cfg) != nil {
		return ParseWith(name, data, m.Joint) // the lexer's places of texts of several lines are those of the whole
	}
	return cfg, inOrder(d.warnings), nil
}

// tree puts the syntax tree together; false if the text has to be parsed as a whole.
func (m *Memory) tree(text string, begins []int) (root *ast.MappingNode, ok bool) {
	if len(text) > int(MaxFile) || len(begins) == 0 {
		return nil, false
	}
	m.turn++
	line := 1 + strings.Count(text[:begins[0]], "\n")
	var section *ast.MappingValueNode
	for i, at := range begins {
		lines := text[at:]
		if i+1 < len(begins) {
			lines = text[at:begins[i+1]]
		}
		p, ok := m.part(lines)
		if !ok {
			return nil, false
		}
		p.move(line)
		line += strings.Count(lines, "\n")
		switch {
		case p.isSection():
			if root == nil {
				root = ast.Mapping(p.pair.Key.GetToken(), false)
			}
			own := *p.pair // its value may become another one
			section, root.Values = &own, append(root.Values, &own)
		case section == nil || !hold(section, p.pair):
			return nil, false
		}
	}
	m.forget()
	return root, true
}

// hold adds an object to its section.
func hold(section, object *ast.MappingValueNode) bool {
	if (node{ast: section.Value}).missing() {
		section.Value = ast.Mapping(object.Key.GetToken(), false)
	}
	objects, ok := section.Value.(*ast.MappingNode)
	if !ok || objects.IsFlowStyle || len(objects.Values) > 0 && placeOf(objects.Values[0].Key.GetToken()).column != placeOf(object.Key.GetToken()).column {
		return false
	}
	objects.Values = append(objects.Values, object)
	return true
}

func (p *part) isSection() bool { return placeOf(p.pair.Key.GetToken()).column == 1 }

// part parses lines, unless they were parsed before and are not in this text already.
func (m *Memory) part(lines string) (*part, bool) {
	if p := m.parts[lines]; p != nil && p.turn < m.turn {
		p.turn = m.turn
		return p, true
	}
	lines = strings.Clone(lines) // without the text around them
	tokens := withoutComments(lexer.Tokenize(lines))
	if len(tokens) == 0 || checkDepth(tokens) != nil {
		return nil, false
	}
	pair, ok := parsePair(tokens)
	if !ok {
		return nil, false
	}
	p := &part{pair: pair, line: 1, turn: m.turn}
	seen := map[*token.Position]bool{}
	ast.Walk(visit(func(n ast.Node) {
		if t := n.GetToken(); t != nil && !seen[t.Position] {
			seen[t.Position] = true
			p.places = append(p.places, t.Position)
		}
	}), pair)
	if m.parts == nil {
		m.parts = map[string]*part{}
	}
	m.parts[lines] = p
	return p, true
}

// visit is called with all nodes of a tree.
type visit func(ast.Node)

// Visit implements ast.Visitor.
func (v visit) Visit(n ast.Node) ast.Visitor {
	v(n)
	return v
}

// move says at which line it begins.
func (p *part) move(line int) {
	for _, at := range p.places {
		at.Line += line - p.line
	}
	p.line = line
}

// forget drops what earlier texts had, once that is more than the last one has.
func (m *Memory) forget() {
	now := 0
	for _, p := range m.parts {
		if p.turn == m.turn {
			now++
		}
	}
	if len(m.parts) <= 2*now {
		return
	}
	for lines, p := range m.parts {
		if p.turn != m.turn {
			delete(m.parts, lines)
		}
	}
}
