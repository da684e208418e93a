package windows

import (
	"maps"
	"slices"
	"sort"
)

// Where an extent's bytes are, if it has none: the range reads as zeroes, and is to be
// zeroed or released below.
const (
	zeroed    = -1
	discarded = -2
)

// extent is a range of a volume whose bytes are elsewhere.
type extent struct {
	off, n int64
	at     int64 // position of the first byte there; zeroed or discarded
	where  int64 // of an Excess: position of its record
}

func (e extent) end() int64 { return e.off + e.n }

// part returns what of the extent lies in [from, to).
func (e extent) part(from, to int64) extent {
	from, to = max(from, e.off), min(to, e.end())
	at := e.at
	if at >= 0 {
		at += from - e.off
	}
	return extent{from, to - from, at, e.where}
}

// stretch is the part of a volume whose extents are in one list, in bytes: lists stay short.
const stretch = 64 << 20

// extents are ranges that do not overlap. A new one replaces parts of those before.
type extents struct {
	lists map[int64][]extent // by stretch, in order
	count int
	bytes int64 // of all that have a position
}

// weigh counts an extent that comes, or goes.
func (x *extents) weigh(e extent, sign int64) {
	x.count += int(sign)
	if e.at >= 0 {
		x.bytes += sign * e.n
	}
}

// put adds an extent in place of what was there.
func (x *extents) put(e extent) {
	x.cut(e.off, e.n)
	if x.lists == nil {
		x.lists = map[int64][]extent{}
	}
	for off := e.off; off < e.end(); {
		key := off / stretch
		to := min(e.end(), (key+1)*stretch)
		list := x.lists[key]
		i := sort.Search(len(list), func(i int) bool { return list[i].off >= off })
		x.lists[key] = slices.Insert(list, i, e.part(off, to))
		x.weigh(e.part(off, to), 1)
		off = to
	}
}

// cut removes a range.
func (x *extents) cut(off, n int64) {
	end := off + n
	for key := off / stretch; n > 0 && key <= (end-1)/stretch; key++ {
		list := x.lists[key]
		first, last := overlap(list, off, end)
		if first == last {
			continue
		}
		var rest []extent
		if a := list[first]; a.off < off {
			rest = append(rest, a.part(a.off, off))
		}
		if b := list[last-1]; b.end() > end {
			rest = append(rest, b.part(end, b.end()))
		}
		for _, r := range rest {
			x.weigh(r, 1)
		}
		for _, gone := range list[first:last] {
			x.weigh(gone, -1)
		}
		if list = slices.Replace(list, first, last, rest...); len(list) == 0 {
			delete(x.lists, key)
		} else {
			x.lists[key] = list
		}
	}
}

// overlap returns the extents of a list that touch [off, end).
func overlap(list []extent, off, end int64) (first, last int) {
	first = sort.Search(len(list), func(i int) bool { return list[i].end() > off })
	last = first
	for last < len(list) && list[last].off < end {
		last++
	}
	return first, last
}

// touches reports whether an extent has a part of a range.
func (x *extents) touches(off, n int64) bool {
	for key := off / stretch; n > 0 && key <= (off+n-1)/stretch; key++ {
		if first, last := overlap(x.lists[key], off, off+n); first < last {
			return true
		}
	}
	return false
}

// each calls f with the parts of extents in a range, in order.
func (x *extents) each(off, n int64, f func(extent)) {
	for key := off / stretch; n > 0 && key <= (off+n-1)/stretch; key++ {
		list := x.lists[key]
		first, last := overlap(list, off, off+n)
		for _, e := range list[first:last] {
			f(e.part(off, off+n))
		}
	}
}

// from returns the first part of a range that an extent has.
func (x *extents) from(off, end int64) (e extent, found bool) {
	for key := off / stretch; key <= (end-1)/stretch; key++ {
		list := x.lists[key]
		if first, last := overlap(list, off, end); first < last {
			return list[first].part(off, end), true
		}
	}
	return e, false
}

// all returns all extents in order.
func (x *extents) all() []extent {
	out := make([]extent, 0, x.count)
	for _, key := range slices.Sorted(maps.Keys(x.lists)) {
		out = append(out, x.lists[key]...)
	}
	return out
}

// clear removes all.
func (x *extents) clear() { *x = extents{} }
