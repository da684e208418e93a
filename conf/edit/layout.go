package edit

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"
)

// kind is what a value is.
type kind int

const (
	null kind = iota
	scalar
	mapping
	sequence
)

// node is a value in the text.
type node struct {
	kind       kind
	flow       bool // in braces or brackets
	start, end int  // bytes of the text; of what is null: where the value would be
	text       string
	plain      bool // a scalar without quotes
	entries    []*entry
}

// entry is an element of a mapping or sequence.
type entry struct {
	key   string // of a mapping
	start int    // of the key, or of the dash, or of a value in brackets
	after int    // behind the colon or the dash; in braces without a colon: behind the key; in brackets: start
	colon bool
	comma int // offset of the comma behind it; -1: none
	value *node
}

// layout reads tokens into nodes.
type layout struct {
	text   string
	tokens token.Tokens // without comments
	starts []int        // of the tokens, in bytes
	ends   []int        // where the text of the next token, or comment, begins
	lines  []int        // where they begin
	notes  []int        // where comments begin
	at     int          // token that is next
	depth  int
}

// maxDepth is how deep collections may be within each other, as conf has it.
const maxDepth = 100

// unfit is a text that is not changed by its place.
type unfit struct {
	line int
	what string
}

func (u unfit) Error() string {
	return fmt.Sprintf("line %d: found %s, which commands do not change: change the file by hand", u.line, u.what)
}

// unfitTypes are parts of YAML that concern more than one place.
var unfitTypes = map[token.Type]string{
	token.AnchorType: "a YAML anchor", token.AliasType: "a YAML alias", token.MergeKeyType: "a YAML merge key",
	token.TagType: "a YAML tag", token.MappingKeyType: "a key after a question mark", token.DirectiveType: "a YAML directive",
	token.InvalidType: "no YAML",
}

func newLayout(text string) (*layout, error) {
	l := &layout{text: text, lines: []int{0}}
	for i := range len(text) {
		if text[i] == '\n' {
			l.lines = append(l.lines, i+1)
		}
	}
	headers := 0
	var last mark
	for _, t := range lexer.Tokenize(text) {
		if what, bad := unfitTypes[t.Type]; bad {
			return nil, unfit{t.Position.Line, what}
		}
		last = l.offset(t, last)
		start := last.offset
		if n := len(l.ends); n > 0 && l.ends[n-1] < 0 {
			l.ends[n-1] = start
		}
		switch t.Type {
		case token.CommentType:
			l.notes = append(l.notes, start)
			continue
		case token.DocumentEndType:
			continue
		case token.DocumentHeaderType:
			if headers++; headers > 1 || len(l.tokens) > 0 {
				return nil, unfit{t.Position.Line, "a second YAML document"}
			}
			continue
		}
		l.tokens, l.starts, l.ends = append(l.tokens, t), append(l.starts, start), append(l.ends, -1)
	}
	if n := len(l.ends); n > 0 && l.ends[n-1] < 0 {
		l.ends[n-1] = len(text)
	}
	return l, nil
}

// mark is a place in the text.
type mark struct{ line, column, offset int }

// offset is where a token begins, which is behind the one before it. Columns count
// characters; those of a line are counted but once, for all objects may be on one.
func (l *layout) offset(t *token.Token, before mark) mark {
	at := mark{t.Position.Line, 1, l.lines[min(t.Position.Line, len(l.lines))-1]}
	if before.line == at.line && before.column <= t.Position.Column {
		at = before
	}
	for ; at.column < t.Position.Column; at.column++ {
		_, n := utf8.DecodeRuneInString(l.text[at.offset:])
		at.offset += n
	}
	return at
}

func (l *layout) peek() *token.Token {
	if l.at == len(l.tokens) {
		return nil
	}
	return l.tokens[l.at]
}

// is reports whether the next token is of a type.
func (l *layout) is(t token.Type) bool { return l.at < len(l.tokens) && l.tokens[l.at].Type == t }

// isKey reports whether the next token is a key in block style.
func (l *layout) isKey() bool {
	return l.at+1 < len(l.tokens) && l.tokens[l.at+1].Type == token.MappingValueType && isScalar(l.tokens[l.at].Type)
}

func isScalar(t token.Type) bool {
	switch t {
	case token.StringType, token.SingleQuoteType, token.DoubleQuoteType, token.IntegerType, token.BinaryIntegerType,
		token.OctetIntegerType, token.HexIntegerType, token.FloatType, token.BoolType, token.InfinityType, token.NanType:
		return true
	}
	return false
}

func (l *layout) strange() error {
	t := l.peek()
	if t == nil {
		t = l.tokens[len(l.tokens)-1]
	}
	return unfit{t.Position.Line, "YAML of a form"}
}

// root reads the whole text.
func (l *layout) root() (*node, error) {
	if len(l.tokens) == 0 {
		return &node{start: len(l.text), end: len(l.text)}, nil
	}
	n, err := l.value()
	if err == nil && l.at != len(l.tokens) {
		err = l.strange()
	}
	return n, err
}

// value reads what begins at the next token.
func (l *layout) value() (*node, error) {
	if l.depth++; l.depth > maxDepth {
		return nil, l.strange()
	}
	defer func() { l.depth-- }()
	switch t := l.peek(); {
	case t == nil:
		return nil, l.strange()
	case l.isKey():
		return l.blockMapping()
	case t.Type == token.SequenceEntryType:
		return l.blockSequence()
	case t.Type == token.MappingStartType:
		return l.flowMapping()
	case t.Type == token.SequenceStartType:
		return l.flowSequence()
	case t.Type == token.LiteralType || t.Type == token.FoldedType:
		return l.blockScalar()
	case t.Type == token.NullType || t.Type == token.ImplicitNullType:
		n := l.scalar()
		n.kind = null
		return n, nil
	case isScalar(t.Type):
		return l.scalar(), nil
	}
	return nil, l.strange()
}

// end is where the text of the token before the next one ends.
func (l *layout) end() int {
	return len(strings.TrimRight(l.text[:l.ends[l.at-1]], " \t\r\n"))
}

func (l *layout) scalar() *node {
	t := l.tokens[l.at]
	n := &node{kind: scalar, start: l.starts[l.at], text: t.Value, plain: t.Type != token.SingleQuoteType && t.Type != token.DoubleQuoteType}
	l.at++
	n.end = l.end()
	return n
}

func (l *layout) blockScalar() (*node, error) {
	n := &node{kind: scalar, start: l.starts[l.at]}
	l.at++
	if l.is(token.StringType) {
		n.text = l.tokens[l.at].Value
		l.at++
	}
	n.end = l.end()
	return n, nil
}

func (l *layout) blockMapping() (*node, error) {
	column := l.tokens[l.at].Position.Column
	n := &node{kind: mapping, start: l.starts[l.at]}
	for l.isKey() && l.tokens[l.at].Position.Column == column {
		key := l.tokens[l.at]
		e := &entry{key: key.Value, start: l.starts[l.at], after: l.starts[l.at+1] + 1, colon: true, comma: -1}
		l.at += 2
		if err := l.below(e, key, false); err != nil {
			return nil, err
		}
		n.entries = append(n.entries, e)
	}
	n.end = n.entries[len(n.entries)-1].value.end
	return n, nil
}

// below reads the value of a key or dash in block style.
func (l *layout) below(e *entry, head *token.Token, dash bool) (err error) {
	t := l.peek()
	sameLine := t != nil && t.Position.Line == head.Position.Line
	switch {
	case t == nil,
		!sameLine && t.Position.Column < head.Position.Column,
		!sameLine && t.Position.Column == head.Position.Column && (dash || t.Type != token.SequenceEntryType):
		e.value = &node{start: e.after, end: e.after}
	case sameLine && !dash && (l.isKey() || t.Type == token.SequenceEntryType):
		err = l.strange()
	default:
		e.value, err = l.value()
	}
	return err
}

func (l *layout) blockSequence() (*node, error) {
	column := l.tokens[l.at].Position.Column
	n := &node{kind: sequence, start: l.starts[l.at]}
	for l.is(token.SequenceEntryType) && l.tokens[l.at].Position.Column == column {
		dash := l.tokens[l.at]
		e := &entry{start: l.starts[l.at], after: l.starts[l.at] + 1, comma: -1}
		l.at++
		if err := l.below(e, dash, true); err != nil {
			return nil, err
		}
		n.entries = append(n.entries, e)
	}
	n.end = n.entries[len(n.entries)-1].value.end
	return n, nil
}

func (l *layout) flowMapping() (*node, error) {
	return l.flow(mapping, token.MappingEndType, func(e *entry) error {
		if !isScalar(l.tokens[l.at].Type) {
			return l.strange()
		}
		key := l.scalar()
		e.key, e.after = key.text, key.end
		if !l.is(token.MappingValueType) {
			e.value = &node{start: e.after, end: e.after}
			return nil
		}
		e.after, e.colon = l.starts[l.at]+1, true
		l.at++
		if l.is(token.CollectEntryType) || l.is(token.MappingEndType) {
			e.value = &node{start: e.after, end: e.after}
			return nil
		}
		return l.inFlow(e)
	})
}

func (l *layout) flowSequence() (*node, error) {
	return l.flow(sequence, token.SequenceEndType, l.inFlow)
}

// inFlow reads a value in braces or brackets.
func (l *layout) inFlow(e *entry) (err error) {
	if l.isKey() || l.is(token.SequenceEntryType) {
		return l.strange()
	}
	e.value, err = l.value()
	return err
}

// flow reads a collection in braces or brackets.
func (l *layout) flow(k kind, end token.Type, element func(*entry) error) (*node, error) {
	n := &node{kind: k, flow: true, start: l.starts[l.at]}
	l.at++
	for !l.is(end) {
		if l.at == len(l.tokens) {
			return nil, l.strange()
		}
		e := &entry{start: l.starts[l.at], after: l.starts[l.at], comma: -1}
		if err := element(e); err != nil {
			return nil, err
		}
		n.entries = append(n.entries, e)
		if l.is(token.CollectEntryType) {
			e.comma = l.starts[l.at]
			l.at++
		} else if !l.is(end) {
			return nil, l.strange()
		}
	}
	n.end = l.starts[l.at] + 1
	l.at++
	return n, nil
}
