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
	if !s.uses(units) {
		return
	}
	for _, n := range s.sessions() {
		w.Add()
		n.state.post(func() {
			n.state.endCopies(units, w)
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

// uses reports whether copies use one of the units.
func (s *Server) uses(units []*scsi.LogicalUnit) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(units, func(lu *scsi.LogicalUnit) bool { return s.mu.used[lu] > 0 })
}

// use implements node.
func (s *Server) use(lu *scsi.LogicalUnit) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.removing[lu] || s.mu.homes[lu] == nil {
		return false
	}
	s.mu.used[lu]++
	return true
}

// release implements node.
func (s *Server) release(used []*scsi.LogicalUnit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, lu := range used {
		if s.mu.used[lu]--; s.mu.used[lu] == 0 {
			delete(s.mu.used, lu)
		}
	}
	s.tellSeenLess()
}
