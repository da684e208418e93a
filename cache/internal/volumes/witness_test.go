package volumes

import (
	"sync/atomic"
	"testing"

	"lunar/backstore"
)

// quietStore is a store whose changes begin when the test says so.
type quietStore struct {
	backstore.Stamper
	word   *atomic.Uint64
	begun  uint64
	asked  int
	during func(s *quietStore, asked int) // a question
	stamps uint64
}

func (s *quietStore) Watch(w *atomic.Uint64) { s.word = w }
func (s *quietStore) Exact() bool            { return true }

func (s *quietStore) Quiet() (uint64, bool) {
	s.asked++
	begun := s.begun
	s.during(s, s.asked)
	return begun, true
}

func (s *quietStore) Stamp() (backstore.Stamp, error) {
	s.during(s, 0)
	s.stamps++
	return backstore.Stamp{State: [3]uint64{s.stamps, s.stamps, s.stamps}}, nil
}

// begin is a change that ends at once.
func (s *quietStore) begin() {
	s.begun++
	if s.word.Load() != backstore.Disturbed {
		s.word.Store(backstore.Disturbed)
	}
}

// Whenever a change begins while a stamp is being noted, or has begun since the look
// before, the row does not say that the store is as noted.
func TestSettling(t *testing.T) {
	for at := -1; at <= 2; at++ { // never, as the stamp is taken, after the first question or the second
		s := &quietStore{during: func(s *quietStore, asked int) {
			if asked == at {
				s.begin()
			}
		}}
		r := NewPrivateTable(1).Row(0)
		w := &Witness{row: r, store: s}
		r.store(atState, rowOpen)
		s.Watch(r.stateWord())
		w.Look()
		if settled := r.state() == rowSettled; settled != (at < 0) {
			t.Errorf("change at %d: settled %t", at, settled)
		}
		if at >= 0 {
			continue
		}
		s.begin()
		if r.state() != rowOpen || r.Noted().Settled {
			t.Error("a change that begins later is not seen")
		}
		for look, want := range []uint64{rowOpen, rowSettled} {
			if w.Look(); r.state() != want {
				t.Errorf("look %d after a change: state %d, expected %d", look, r.state(), want)
			}
		}
	}
}
