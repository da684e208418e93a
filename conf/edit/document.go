package edit

import (
	"errors"
	"fmt"
	"strings"
)

// Document is the text of a configuration, and what it says. It does not change.
type Document struct {
	mark  string // byte order mark
	crlf  bool   // its lines end with a carriage return as well
	text  string // without both
	notes []int  // where its comments begin
	root  *node
	tree  Object
}

// byteOrderMark may begin a text; it means nothing there.
const byteOrderMark = "\xef\xbb\xbf"

// Parse reads a text. An error tells what in it is not for commands to change.
func Parse(text []byte) (*Document, error) {
	d := &Document{text: string(text)}
	if rest, ok := strings.CutPrefix(d.text, byteOrderMark); ok {
		d.mark, d.text = byteOrderMark, rest
	}
	if n := strings.Count(d.text, "\r\n"); n > 0 && n == strings.Count(d.text, "\n") {
		d.crlf, d.text = true, strings.ReplaceAll(d.text, "\r\n", "\n")
	}
	if strings.Contains(d.text, "\r") {
		return nil, errors.New("found carriage returns that do not end each line, which commands do not change")
	}
	l, err := newLayout(d.text)
	if err != nil {
		return nil, err
	}
	d.notes = l.notes
	if d.root, err = l.root(); err != nil {
		return nil, err
	}
	if d.root.kind != mapping && d.root.kind != null {
		return nil, errors.New("found no mapping, expected a configuration")
	}
	d.tree, _ = d.root.tree("").(Object)
	return d, nil
}

// Text is the whole of it.
func (d *Document) Text() []byte { return d.whole(d.text) }

// Comments is the whole of it with other comments: to makes each of the one that there is,
// from # to the end of its line, and returns one line.
func (d *Document) Comments(to func(string) string) []byte {
	var out strings.Builder
	rest := 0
	for _, start := range d.notes {
		note, _, _ := strings.Cut(d.text[start:], "\n")
		out.WriteString(d.text[rest:start])
		out.WriteString(to(note))
		rest = start + len(note)
	}
	out.WriteString(d.text[rest:])
	return d.whole(out.String())
}

// whole is a text with what was taken off the Document's.
func (d *Document) whole(text string) []byte {
	if d.crlf {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	return []byte(d.mark + text)
}

// Tree is what the text says. It must not be changed.
func (d *Document) Tree() Object { return d.tree }

// Become is a Document that says want, and whose text is the same wherever d says the
// same.
func (d *Document) Become(want Object) (*Document, error) {
	if !within(want, maxDepth) {
		return nil, fmt.Errorf("found values more than %d deep within each other, which no configuration has", maxDepth)
	}
	if Same(d.tree, want) {
		return d, nil
	}
	s := &splicer{Document: d}
	s.mapping(d.root, d.tree, want, -1)
	out, ok := s.near()
	if !ok {
		var err error
		if out, err = Parse(d.whole(s.text())); err != nil {
			return nil, fmt.Errorf("the change cannot be written into this text: %w", err)
		}
	}
	if !Same(out.tree, want) {
		return nil, errors.New("the change cannot be written into this text: it would say something else; change the file by hand")
	}
	return out, nil
}
