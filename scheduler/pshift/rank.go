package pshift

// ranked is a numbered value.
type ranked struct {
	index int
	value uint64
}

// ahead orders by value, larger first, and then by index, lower first.
func (r ranked) ahead(o ranked) bool {
	return r.value > o.value || r.value == o.value && r.index < o.index
}

// selectTop reorders v so that its first n elements are the n that are ahead
// of the others, by quickselect. It takes linear time but for inputs made
// against it; which elements come first does not depend on their order.
func selectTop(v []ranked, n int) {
	for len(v) > 1 && n > 0 && n < len(v) {
		at := partition(v)
		switch {
		case at == n:
			return
		case at > n:
			v = v[:at]
		default:
			n -= at + 1
			v = v[at+1:]
		}
	}
}

// partition moves a middle element to where it would be if v were sorted, what
// is ahead of it before it, and returns its place.
func partition(v []ranked) int {
	last := len(v) - 1
	middle := medianOf(v, 0, len(v)/2, last)
	v[middle], v[last] = v[last], v[middle]
	at := 0
	for i := range last {
		if v[i].ahead(v[last]) {
			v[i], v[at] = v[at], v[i]
			at++
		}
	}
	v[at], v[last] = v[last], v[at]
	return at
}

func medianOf(v []ranked, a, b, c int) int {
	if v[b].ahead(v[a]) {
		a, b = b, a
	}
	switch { // a is ahead of b
	case v[b].ahead(v[c]):
		return b
	case v[a].ahead(v[c]):
		return c
	}
	return a
}
