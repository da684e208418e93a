package scsi

import (
	"slices"
	"time"
)

// forgetAfter is how long after a unit attention was reported it may be forgotten: the
// response that reports it has left by then, or its session is about to end.
const forgetAfter = 5 * time.Second

// forgetReported has conditions that a nexus was told of be forgotten after a while.
func (lu *LogicalUnit) forgetReported(n *Nexus) {
	lu.mu.Lock()
	defer lu.mu.Unlock()
	if slices.ContainsFunc(lu.mu.owed, func(o Owed) bool { return o.Nexus == n.Identity() }) {
		lu.forgetLater()
	}
}

// forgetLater has what was told forgotten after a while. The caller holds mu.
func (lu *LogicalUnit) forgetLater() {
	if !lu.mu.forgetting {
		lu.mu.forgetting = true
		time.AfterFunc(forgetAfter, func() { lu.registrar.do(lu.forgetTold) })
	}
}

// forgetTold forgets the conditions that had been told when it was called before, and notes
// those that have been since. It is the registrar's.
func (lu *LogicalUnit) forgetTold() {
	lu.mu.Lock()
	lu.mu.forgetting = false
	told := lu.told()
	gone := func(o Owed) bool { return slices.Contains(told, o) && slices.Contains(lu.mu.told, o) }
	var forget []Owed
	for _, o := range lu.mu.owed {
		if gone(o) {
			forget = append(forget, o)
		}
	}
	if lu.mu.told = told; len(told) > len(forget) {
		lu.forgetLater()
	}
	lu.mu.Unlock()
	if len(forget) == 0 {
		return
	}
	rest := func(owed []Owed) []Owed {
		return slices.DeleteFunc(slices.Clone(owed), func(o Owed) bool { return slices.Contains(forget, o) })
	}
	_ = lu.lasting(nil, func(h *Heritage) { h.Owed = rest(h.Owed) }, func() { lu.mu.owed = rest(lu.mu.owed) }) // or the next change does it
}

// told are the owed conditions that their nexuses are not to be told of any more. The caller
// holds mu.
func (lu *LogicalUnit) told() (all []Owed) {
	for _, o := range lu.mu.owed {
		for n := range lu.mu.nexuses {
			if n.Identity() == o.Nexus && !n.has(o.ASC) {
				all = append(all, o)
				break
			}
		}
	}
	return all
}

// remind tells a nexus what an earlier server may not have told it. The caller holds mu.
func (lu *LogicalUnit) remind(n *Nexus) {
	for _, o := range lu.mu.owed {
		if o.Nexus == n.Identity() {
			n.Attention(o.ASC)
		}
	}
}
