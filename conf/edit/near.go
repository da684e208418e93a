package edit

import (
	"maps"
	"slices"
	"strings"
)

// A text of many objects takes long to read, and most changes are of few of them. What
// comes of a change is therefore read where it is: the lines of the objects that it
// touches, each by itself. That is the same as reading all, because an object in block
// style begins with its key in a line of its own, and ends where the next one begins, or
// the next section: read by itself, it is whole, or it is refused and all is read.

// lines are whole lines of the text with an entry of a section and what follows it.
type lines struct {
	start, end int
	splices    []splice
}

// near is the Document with all splices in their place; false if all of it has to be read.
func (s *splicer) near() (*Document, bool) {
	root := s.root
	if root.kind != mapping || root.flow || len(s.tree) != len(root.entries) || s.crlf {
		return nil, false
	}
	b := builder{splicer: s, root: &node{kind: mapping, start: root.start}, tree: maps.Clone(s.tree)}
	left := s.sorted()
	for i, section := range root.entries {
		end := len(s.Document.text)
		if i+1 < len(root.entries) {
			end = s.lineOf(root.entries[i+1].start)
		}
		n := 0
		for n < len(left) && left[n].end <= end {
			n++
		}
		if !b.section(section, end, left[:n]) {
			return nil, false
		}
		left = left[n:]
	}
	if len(left) > 0 {
		return nil, false
	}
	return b.document(), true
}

// builder puts a Document together of what has been read before and what is read anew.
type builder struct {
	*splicer
	out   strings.Builder
	at    int // how much of the old text is in out
	notes []int
	root  *node
	tree  Object
}

// by is how far what follows has moved.
func (b *builder) by() int { return b.out.Len() - b.at }

// keep takes the text up to end as it is.
func (b *builder) keep(end int) {
	b.out.WriteString(b.splicer.Document.text[b.at:end])
	b.at = end
}

func (b *builder) document() *Document {
	b.keep(len(b.splicer.Document.text))
	b.root.end = b.root.entries[len(b.root.entries)-1].value.end
	slices.Sort(b.notes)
	return &Document{mark: b.mark, text: b.out.String(), notes: b.notes, root: b.root, tree: b.tree}
}

// section takes over a section that ends at end, with its splices.
func (b *builder) section(e *entry, end int, splices []splice) bool {
	v := e.value
	if len(splices) == 0 {
		b.root.entries = append(b.root.entries, e.moved(b.by()))
		b.keepNotes(b.at, end)
		b.keep(end)
		return true
	}
	objects, ok := b.tree[e.key].(Object)
	if v.kind != mapping || v.flow || !ok || len(objects) != len(v.entries) || len(v.entries) == 0 {
		return false
	}
	objects = maps.Clone(objects)
	b.tree[e.key] = objects
	section := &node{kind: mapping}
	head, by := *e, b.by()
	for i, o := range v.entries {
		all := lines{start: b.splicer.lineOf(o.start), end: end}
		if i+1 < len(v.entries) {
			all.end = b.splicer.lineOf(v.entries[i+1].start)
		}
		for len(splices) > 0 && splices[0].end <= all.end {
			all.splices, splices = append(all.splices, splices[0]), splices[1:]
		}
		if len(all.splices) == 0 {
			section.entries = append(section.entries, o.moved(b.by()))
			b.keepNotes(b.at, all.end)
			b.keep(all.end)
			continue
		}
		delete(objects, o.key)
		fresh, ok := b.read(&all, b.splicer.columnOf(o.start))
		if !ok {
			return false
		}
		for _, f := range fresh {
			if _, twice := objects[f.key]; twice {
				return false
			}
			objects[f.key] = f.value.tree(f.key)
		}
		section.entries = append(section.entries, fresh...)
	}
	if len(section.entries) == 0 {
		return false
	}
	section.start, section.end = section.entries[0].start, section.entries[len(section.entries)-1].value.end
	head.value = section // which is where it belongs
	head.start, head.after = head.start+by, head.after+by
	b.root.entries = append(b.root.entries, &head)
	return true
}

// keepNotes takes over the comments from a place to another.
func (b *builder) keepNotes(from, to int) {
	first, _ := slices.BinarySearch(b.splicer.Document.notes, from)
	for _, at := range b.splicer.Document.notes[first:] {
		if at >= to {
			return
		}
		b.notes = append(b.notes, at+b.by())
	}
}

// read reads lines with their splices, whose entries are in a column.
func (b *builder) read(all *lines, column int) ([]*entry, bool) {
	b.keepNotes(b.at, all.start)
	b.keep(all.start)
	if all.splices[0].start < all.start {
		return nil, false
	}
	base := b.out.Len()
	part := splicer{Document: b.splicer.Document, all: all.splices}
	text := part.between(all.start, all.end)
	b.out.WriteString(text)
	b.at = all.end
	l, err := newLayout(text)
	if err != nil || strings.Contains(text, "\r") {
		return nil, false
	}
	for _, note := range l.notes {
		b.notes = append(b.notes, base+note)
	}
	if len(l.tokens) == 0 {
		return nil, true
	}
	l.depth = 1 // of the section
	n, err := l.value()
	if err != nil || l.at != len(l.tokens) || n.kind != mapping || n.flow || (&splicer{Document: &Document{text: text}}).columnOf(n.start) != column {
		return nil, false
	}
	return n.moved(base).entries, true
}

// moved is an entry with all that is below it, so many bytes further on.
func (e *entry) moved(by int) *entry {
	if by == 0 {
		return e
	}
	out := *e
	out.start, out.after, out.value = e.start+by, e.after+by, e.value.moved(by)
	if e.comma >= 0 {
		out.comma += by
	}
	return &out
}

func (n *node) moved(by int) *node {
	if by == 0 {
		return n
	}
	out := *n
	out.start, out.end = n.start+by, n.end+by
	out.entries = slices.Clone(n.entries)
	for i, e := range n.entries {
		out.entries[i] = e.moved(by)
	}
	return &out
}
