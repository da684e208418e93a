package tcp

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"

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

// TestPromisedAreAnsweredAtOnce: what a connection is answered that was promised
// something leaves when it has been served, not when all others have.
func TestPromisedAreAnsweredAtOnce(t *testing.T) {
	for _, promised := range []bool{false, true} {
		s := newShelf(t)
		s.on(func() {
			s.loop.SetOrder(always{})
			s.r.promised = promised
			s.mover.SendControl(new(pdu.BHS), nil, nil)
			s.mover.Ready(unix.EPOLLIN)
			if left := !s.mover.tx.pending(); left != promised {
				t.Errorf("promised %v: answered at once %v", promised, left)
			}
			s.loop.SetOrder(nil)
		})
		s.peer.Close()
	}
}
