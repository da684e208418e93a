package tcp

import (
	"slices"
	"testing"

	"lunar/target/pdu"
)

// always is an order whose turns are over at once.
type always struct{}

func (always) Begin(int64)    {}
func (always) End(int64)      {}
func (always) Due(int64) bool { return true }
func (always) Resumed(int64)  {}

// TestConnectionDoesNotInterruptItself: what comes while PDUs are being taken is taken
// after them, also of a connection that goes before others.
func TestConnectionDoesNotInterruptItself(t *testing.T) {
	s := newShelf(t)
	defer s.peer.Close()
	send := func(tags ...uint32) {
		for _, tag := range tags {
			var b pdu.BHS
			b.SetITT(tag)
			if _, err := s.peer.Write(b[:]); err != nil {
				t.Error(err)
			}
		}
	}
	var taken []uint32
	s.on(func() {
		s.loop.SetOrder(always{})
		s.r.taken = func(bhs *pdu.BHS) {
			if taken = append(taken, bhs.ITT()); len(taken) == 1 {
				send(3)
			}
		}
		send(1, 2)
		s.mover.Resume()
	})
	s.on(func() {}) // a pass later
	s.on(func() { s.loop.SetOrder(nil) })
	if !slices.Equal(taken, []uint32{1, 2, 3}) {
		t.Errorf("taken in the order %d, expected 1, 2, 3", taken)
	}
}
