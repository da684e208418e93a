// Package changes counts what alters a store, for backstore.Watched.
package changes

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Disturbed is what Begin puts into the word that watches: no bit that flips makes it
// another.
const Disturbed = 0x1111111111111111

// Count is that of a lane, or of a few that share it.
type Count struct {
	of           *Counts
	begun, ended atomic.Uint64
	_            [5]uint64 // threads do not share a cache line
}

// Counts are those of a store. The zero value is ready.
type Counts struct {
	word atomic.Pointer[atomic.Uint64]
	mu   sync.Mutex
	all  []*Count
	past uint64 // changes of those that were removed
}

// Add makes a Count.
func (s *Counts) Add() *Count {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := &Count{of: s}
	s.all = append(s.all, n)
	return n
}

// Remove ends what Add began; all changes have ended.
func (n *Count) Remove() {
	s := n.of
	s.mu.Lock()
	defer s.mu.Unlock()
	s.past += n.begun.Load()
	s.all = slices.DeleteFunc(s.all, func(o *Count) bool { return o == n })
}

// Begin comes before a change.
//
// INVARIANT: who finds the count as before after it has put something else than
// Disturbed into the word sees Disturbed there before the change.
func (n *Count) Begin() {
	n.begun.Add(1)
	if w := n.of.word.Load(); w != nil && w.Load() != Disturbed {
		w.Store(Disturbed)
	}
}

// End comes after a change.
func (n *Count) End() { n.ended.Add(1) }

// Watch sets the word that Begin disturbs; nil is none.
func (s *Counts) Watch(word *atomic.Uint64) { s.word.Store(word) }

// Quiet counts the changes that have begun, and reports whether all have ended.
func (s *Counts) Quiet() (begun uint64, quiet bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ended := s.past
	for _, n := range s.all {
		ended += n.ended.Load() // before begun: what begins meanwhile has not ended
	}
	begun = s.past
	for _, n := range s.all {
		begun += n.begun.Load()
	}
	return begun, begun == ended
}
