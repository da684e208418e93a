package edit

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// splicer collects what of a text becomes another one.
type splicer struct {
	*Document
	all []splice
}

// splice puts text in the place of the bytes from start to end.
type splice struct {
	start, end int
	text       string
}

func (s *splicer) put(start, end int, text string) {
	s.all = append(s.all, splice{start, end, text})
}

// text is the Document's with everything in its place.
func (s *splicer) text() string { return s.between(0, len(s.Document.text)) }

// sorted are the splices in the order of the text.
func (s *splicer) sorted() []splice {
	slices.SortStableFunc(s.all, func(a, b splice) int { return cmp.Or(a.start-b.start, a.end-b.end) })
	return s.all
}

// between is a part of the text with everything in its place.
func (s *splicer) between(at, end int) string {
	var b strings.Builder
	for _, p := range s.sorted() {
		b.WriteString(s.Document.text[at:max(p.start, at)])
		b.WriteString(p.text)
		at = max(at, p.end)
	}
	b.WriteString(s.Document.text[at:max(at, end)])
	return b.String()
}

// mapping makes the entries of a mapping, which says have, those of want. level is how
// deep it is.
func (s *splicer) mapping(n *node, have, want Object, level int) {
	fresh := maps.Clone(want)
	kept := make([]*entry, 0, len(n.entries))
	for _, e := range n.entries {
		delete(fresh, e.key)
		if value, there := want[e.key]; there {
			s.value(n, e, have[e.key], value, level)
			kept = append(kept, e)
		}
	}
	var added []string
	for _, key := range inOrder(keysOf(fresh)) {
		if n.flow {
			added = append(added, word(key, true)+": "+inner(want[key]))
			continue
		}
		var b strings.Builder
		s.block(&b, key, want[key], s.indentOf(n), level+1)
		added = append(added, b.String())
	}
	s.become(n, kept, added)
}

// become drops the entries of a collection that are not kept, and adds others behind
// them.
func (s *splicer) become(n *node, kept []*entry, added []string) {
	if n.flow {
		s.becomeFlow(n, kept, added)
		return
	}
	next := 0 // of kept, which are in order
	for i, e := range n.entries {
		if next < len(kept) && kept[next] == e {
			next++
			continue
		}
		s.removeLines(n, i)
	}
	s.insertLines(s.behind(n), strings.Join(added, ""))
}

// behind is the line behind a collection in block style.
func (s *splicer) behind(n *node) int {
	if len(n.entries) == 0 {
		return len(s.Document.text)
	}
	return s.extent(n.entries[len(n.entries)-1])
}

// insertLines puts whole lines where a line begins, or at the end of the text.
func (s *splicer) insertLines(at int, lines string) {
	if lines == "" {
		return
	}
	if before := s.Document.text[:at]; before != "" && !strings.HasSuffix(before, "\n") {
		lines = "\n" + strings.TrimSuffix(lines, "\n")
	}
	s.put(at, at, lines)
}

func (s *splicer) becomeFlow(n *node, kept []*entry, added []string) {
	for i, e := range n.entries {
		if slices.Contains(kept, e) {
			continue
		}
		s.put(e.start, e.value.end, "")
		s.dropComma(n, i)
	}
	if len(kept) == 0 {
		s.put(n.start+1, n.start+1, strings.Join(added, ", "))
		return
	}
	last := kept[len(kept)-1]
	if final := n.entries[len(n.entries)-1]; last != final && final.comma < 0 {
		s.dropComma(n, slices.Index(n.entries, last))
	}
	if len(added) > 0 {
		end := max(last.value.end, last.after)
		s.put(end, end, ", "+strings.Join(added, ", "))
	}
}

// dropComma takes the comma behind an entry away, and the space that follows.
func (s *splicer) dropComma(n *node, i int) {
	comma := n.entries[i].comma
	if comma < 0 {
		return
	}
	end := comma + 1
	if i+1 < len(n.entries) && s.Document.text[end:n.entries[i+1].start] == " " {
		end++
	}
	s.put(comma, end, "")
}

// lineOf is where the line of a byte begins.
func (s *splicer) lineOf(at int) int { return strings.LastIndexByte(s.Document.text[:at], '\n') + 1 }

// lineEnd is where the line of a byte ends, with or without its newline.
func (s *splicer) lineEnd(at int, newline bool) int {
	i := strings.IndexByte(s.Document.text[at:], '\n')
	if i < 0 {
		return len(s.Document.text)
	}
	if newline {
		return at + i + 1
	}
	return at + i
}

// columnOf is how many characters are before a byte in its line.
func (s *splicer) columnOf(at int) int {
	return len([]rune(s.Document.text[s.lineOf(at):at]))
}

// indentOf is that of the entries of a mapping in block style.
func (s *splicer) indentOf(n *node) int {
	if len(n.entries) == 0 {
		return 0
	}
	return s.columnOf(n.entries[0].start)
}

// extent is the line behind an entry in block style: comments that are further to the
// right than its key are its own.
func (s *splicer) extent(e *entry) int {
	end := s.lineEnd(max(e.value.end, e.after), true)
	column := s.columnOf(e.start)
	for at := end; at < len(s.Document.text); {
		next := s.lineEnd(at, true)
		line := s.Document.text[at:next]
		trimmed := strings.TrimSpace(line)
		own := strings.HasPrefix(trimmed, "#") && len(line)-len(strings.TrimLeft(line, " ")) > column
		if trimmed != "" && !own {
			break
		}
		if at = next; own {
			end = at
		}
	}
	return end
}

// removeLines takes an entry out of a collection in block style.
func (s *splicer) removeLines(n *node, i int) {
	e, end := n.entries[i], s.extent(n.entries[i])
	line := s.lineOf(e.start)
	switch {
	case strings.TrimSpace(s.Document.text[line:e.start]) == "":
		s.put(line, end, "")
	case i+1 < len(n.entries) && strings.TrimSpace(s.Document.text[end:n.entries[i+1].start]) == "":
		s.put(e.start, n.entries[i+1].start, "") // the next one follows the dash
	default:
		s.put(e.start, end-1, "")
	}
}

// value makes the value of an entry of n, which is have, another one, if it is not the
// same.
func (s *splicer) value(n *node, e *entry, have, want any, level int) {
	v := e.value
	if same(e.key, have, want) {
		return
	}
	was, _ := have.(Object)
	if o, ok := want.(Object); ok && v.kind == mapping {
		s.mapping(v, was, o, level+1)
		return
	}
	if list, ok := want.([]any); ok && len(list) > 0 && s.list(v, e.key, list, level+1) {
		return
	}
	s.replace(n, e, want, level+1)
}

// replace writes another value for an entry of n.
func (s *splicer) replace(n *node, e *entry, want any, level int) {
	v := e.value
	sameLine := s.lineOf(v.start) == s.lineOf(e.after)
	if !n.flow && sameLine && isEmpty(v.tree(e.key)) && !isEmpty(want) && s.lineOf(v.end) == s.lineOf(v.start) {
		var b strings.Builder
		s.blockValue(&b, want, s.columnOf(e.start), level)
		if lines := strings.TrimSuffix(b.String(), "\n"); strings.HasPrefix(lines, "\n") {
			end := s.lineEnd(v.end, false)
			s.put(v.start, v.end, "")
			s.put(end, end, lines)
			return
		}
	}
	text := flow(want)
	if n.flow {
		text = inner(want)
	}
	switch {
	case v.start == v.end && n.kind == mapping && !e.colon:
		s.put(e.after, e.after, ": "+text)
	case v.start == v.end:
		s.put(e.after, e.after, " "+text)
	case v.flow || v.kind == scalar || v.kind == null:
		s.put(v.start, v.end, text)
	case sameLine: // a mapping behind a dash
		s.put(v.start, s.lineEnd(s.extent(e)-1, false), text)
	default:
		s.put(e.after, e.after, " "+text)
		s.put(s.lineEnd(e.after, true), s.extent(e), "")
	}
}
