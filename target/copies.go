package target

import (
	"slices"

	"lunar/internal/evloop"
	"lunar/internal/waits"
	"lunar/target/scsi"
)

// endCopies ends the copies that use one of the logical units, by whatever LUN and
// session they were begun, as COPY OPERATION ABORT does: who resets a unit, or takes
// it away, stops what is copied from it and to it (SPC-4 clause 5.17.5). w, if there
// is one, waits for their ends, also for those of copies that this or another function
// has aborted as commands before: they may still write.
func (s *Server) endCopies(units []*scsi.LogicalUnit, w *waits.Waiter) {
	if !s.holds(units) {
		return
	}
	for _, n := range s.allSessions() {
		w.Add()
		n.core.post(func() {
			n.core.endCopies(units, w)
			w.Done()
		})
	}
	for _, th := range s.threads {
		w.Add()
		th.loop.Post(evloop.Func(func() {
			th.endCopies(units, w)
			w.Done()
		}))
	}
}

// endCopies ends those of the session.
func (c *core) endCopies(units []*scsi.LogicalUnit, w *waits.Waiter) {
	for _, t := range c.tasks.appendMatching(nil, func(t *task) bool { return meet(t.held, units) }) {
		if !t.listed {
			continue
		}
		w.Awaits(&t.awaitedBy)
		if !t.cmd.Aborted() {
			t.fail(scsi.CopyCleared)
		}
	}
}

// holds reports whether copies use one of the units.
func (s *Server) holds(units []*scsi.LogicalUnit) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(units, func(lu *scsi.LogicalUnit) bool { return s.mu.held[lu] > 0 })
}

// meet reports whether one of the units is in both lists.
func meet(a, b []*scsi.LogicalUnit) bool {
	return slices.ContainsFunc(a, func(lu *scsi.LogicalUnit) bool { return slices.Contains(b, lu) })
}
