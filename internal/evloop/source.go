package evloop

import "slices"

// Source is where work comes from that is found by looking rather than told by a
// descriptor, such as the completion queue of an RDMA device.
type Source interface {
	// Look does what has come, a bounded part of it, and returns how much that
	// was. It is called once in each pass.
	Look() int
	// Sleep is called before the loop may sleep: from now on a registered
	// descriptor has to tell what comes. True says that something has come by
	// now, so that there is to be no sleep.
	Sleep() (came bool)
}

// PriorSource is a Source some of whose work may go before that of others.
type PriorSource interface {
	Source
	// LookAhead does what has come for those that go before whoever is being served,
	// and what they are answered leaves at once. The rest is kept for Look.
	LookAhead()
}

// AddSource makes the loop look into s in each pass.
func (l *Loop) AddSource(s Source) {
	l.assertThread("AddSource")
	l.sources = append(l.sources, s)
}

// RemoveSource undoes AddSource.
func (l *Loop) RemoveSource(s Source) {
	l.assertThread("RemoveSource")
	l.sources = slices.DeleteFunc(l.sources, func(o Source) bool { return o == s })
}

// look is a pass's look into all sources.
func (l *Loop) look() (work int) {
	for i := 0; i < len(l.sources); i++ {
		work += l.sources[i].Look()
	}
	return work
}

// lookAhead lets sources serve those that go first.
func (l *Loop) lookAhead() {
	l.order.ahead = true
	for i := 0; i < len(l.sources); i++ {
		if s, ok := l.sources[i].(PriorSource); ok {
			s.LookAhead()
		}
	}
	l.order.ahead = false
}

// sourcesSleep reports whether no source keeps the loop awake.
func (l *Loop) sourcesSleep() bool {
	for _, s := range l.sources {
		if s.Sleep() {
			return false
		}
	}
	return true
}
