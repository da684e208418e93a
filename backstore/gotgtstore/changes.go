package gotgtstore

import (
	"sync/atomic"

	"lunar/backstore"
)

// changes counts what alters a store, for backstore.Watched. All lanes share it: beside
// a worker's way it costs nothing.
type changes struct {
	begun, ended atomic.Uint64
	word         atomic.Pointer[atomic.Uint64]
}

// begin comes before a change.
//
// INVARIANT: who finds the count as before after it has put something else than
// Disturbed into the word sees Disturbed there before the change.
func (c *changes) begin() {
	c.begun.Add(1)
	if w := c.word.Load(); w != nil && w.Load() != backstore.Disturbed {
		w.Store(backstore.Disturbed)
	}
}

func (c *changes) end() { c.ended.Add(1) }

// quiet counts the changes that have begun, and reports whether all have ended.
func (c *changes) quiet() (begun uint64, quiet bool) {
	ended := c.ended.Load() // before begun: what begins meanwhile has not ended
	begun = c.begun.Load()
	return begun, begun == ended
}
