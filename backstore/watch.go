package backstore

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Watched is a Stamper that tells when its own operations change its stamp. Who notes a
// stamp while it is Quiet, and finds another later, knows of somebody else.
type Watched interface {
	Stamper
	// Watch has the store put Disturbed into word before it begins anything that
	// changes its stamp, unless that is there. The word must last until Watch(nil).
	Watch(word *atomic.Uint64)
	// Quiet counts the changes that have begun, and reports whether all have ended.
	Quiet() (begun uint64, quiet bool)
	// Exact reports whether each change by this host makes another stamp at once, with
	// times by this host's clock. A file system in the network has another clock, and a device
	// behind the page cache is written at any time.
	Exact() bool
}

// Disturbed is what Watch puts into its word: no bit that flips makes it another.
const Disturbed = 0x1111111111111111

// tally counts the changes of one lane. Only its thread writes it.
type tally struct {
	begun, ended atomic.Uint64
	_            [6]uint64 // threads do not share a cache line
}

// tallies are those of all lanes of a volume.
type tallies struct {
	word atomic.Pointer[atomic.Uint64]
	mu   sync.Mutex
	all  []*tally
	past uint64 // changes of lanes that are closed
}

func (t *tallies) add() *tally {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := &tally{}
	t.all = append(t.all, n)
	return n
}

func (t *tallies) remove(n *tally) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.past += n.begun.Load()
	t.all = slices.DeleteFunc(t.all, func(o *tally) bool { return o == n })
}

// begin comes before a change.
//
// INVARIANT: who finds the count as before after it has put something else than
// Disturbed into the word sees Disturbed there before the change.
func (t *tallies) begin(n *tally) {
	n.begun.Add(1)
	if w := t.word.Load(); w != nil && w.Load() != Disturbed {
		w.Store(Disturbed)
	}
}
