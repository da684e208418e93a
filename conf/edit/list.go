package edit

import (
	"strings"
)

// list makes the elements of a list those of want, whatever of it can stay; false if it
// is better written anew.
func (s *splicer) list(n *node, key string, want []any, level int) bool {
	places, ok := named(key, want)
	switch {
	case n.kind == mapping && key == "luns" && ok:
		s.longLUNs(n, want, places)
		return true
	case n.kind != sequence:
		return false
	}
	old := n.tree(key).([]any)
	if _, both := named(key, old); ok && both {
		s.elements(n, key, want, places, level)
		return true
	}
	if len(old) == len(want) && isObjects(old) && isObjects(want) {
		for i, e := range n.entries {
			s.value(n, e, old[i], want[i], level)
		}
		return true
	}
	return s.inOrder(n, want)
}

func isObjects(list []any) bool {
	for _, v := range list {
		if _, ok := v.(Object); !ok {
			return false
		}
	}
	return true
}

// elements changes a list whose elements have names.
func (s *splicer) elements(n *node, key string, want []any, places map[string]int, level int) {
	var kept []*entry
	used := map[int]bool{}
	for _, e := range n.entries {
		name, _ := nameOf(key, e.value.tree(""))
		if i, there := places[name]; there {
			s.value(n, e, e.value.tree(""), want[i], level)
			used[i] = true
			kept = append(kept, e)
		}
	}
	var rest []any
	for i, v := range want {
		if !used[i] {
			rest = append(rest, v)
		}
	}
	s.become(n, kept, s.written(n, rest))
}

// written are new elements of a list.
func (s *splicer) written(n *node, elements []any) (all []string) {
	for _, v := range elements {
		if n.flow {
			all = append(all, inner(v))
			continue
		}
		all = append(all, s.line(n, v))
	}
	return all
}

// line is an element of a list in block style, or of a mapping that becomes one.
func (s *splicer) line(n *node, v any) string {
	return strings.Repeat(" ", s.indentOf(n)) + "- " + flow(v) + "\n"
}

// inOrder keeps the elements with which want begins, and adds the others behind them.
func (s *splicer) inOrder(n *node, want []any) bool {
	var kept []*entry
	for _, e := range n.entries {
		if len(kept) < len(want) && same("", e.value.tree(""), want[len(kept)]) {
			kept = append(kept, e)
		}
	}
	if len(kept) == 0 {
		return false
	}
	s.become(n, kept, s.written(n, want[len(kept):]))
	return true
}

// longLUNs makes a list of LUNs of its short form, a mapping.
func (s *splicer) longLUNs(n *node, want []any, places map[string]int) {
	var kept []*entry
	used := map[int]bool{}
	for _, e := range n.entries {
		i, there := places[e.key]
		if !there {
			continue
		}
		used[i] = true
		kept = append(kept, e)
		text := flow(want[i])
		if !n.flow {
			text = "- " + text
		}
		s.put(e.start, max(e.value.end, e.after), text)
	}
	var rest []any
	for i, v := range want {
		if !used[i] {
			rest = append(rest, v)
		}
	}
	if n.flow {
		s.put(n.start, n.start+1, "[")
		s.put(n.end-1, n.end, "]")
	}
	s.become(n, kept, s.written(n, rest))
}
