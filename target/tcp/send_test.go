package tcp

import (
	"bytes"
	"io"
	"testing"

	"golang.org/x/sys/unix"

	"lunar/internal/evloop"
	"lunar/target/pdu"
)

// TestWhatLeaves: three parts leave before the end of a pass, with data or without, and
// as many in the next one.
func TestWhatLeaves(t *testing.T) {
	const size, count = 4 << 10, 40
	for _, data := range [][]byte{nil, make([]byte, size)} {
		s, length := newShelf(t), pdu.BHSLength+len(data)
		sent := func() int {
			n, err := unix.IoctlGetInt(int(s.peer.Fd()), unix.TIOCINQ)
			if err != nil {
				t.Fatal(err)
			}
			return n / length
		}
		for pass := range 2 {
			var during int
			s.on(func() {
				for range count {
					p := (*pdu.DataIn)(&pdu.BHS{}).Init()
					p.SetHasStatus(true)
					p.BHS().SetDataSegmentLength(len(data))
					s.mover.PutData(p, data, nil)
				}
				during = sent()
			})
			s.on(func() {}) // a pass later
			if after := sent(); during != earlySends*earlyFrom || after != count {
				t.Errorf("%d bytes of data, pass %d: %d left in it, %d in all, expected %d and %d", len(data), pass, during, after, earlySends*earlyFrom, count)
			}
			if _, err := io.ReadFull(s.peer, make([]byte, count*length)); err != nil {
				t.Fatal(err)
			}
		}
		s.peer.Close()
	}
}

// TestPassesAreShort: what piles up for a peer that has made room for all of it leaves in
// parts, one in each pass, in which another connection sends its own.
func TestPassesAreShort(t *testing.T) {
	const pieces = 3 * passSent / bookSize
	s := newShelf(t)
	if err := unix.SetsockoptInt(s.mover.fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 4*pieces*bookSize); err != nil {
		t.Skip("no socket buffer large enough: ", err)
	}
	var longest uint64
	passes, before := 0, uint64(0)
	ended := make(chan struct{})
	var watch evloop.Task
	watch = evloop.Func(func() {
		now := s.mover.tx.total
		longest, before = max(longest, now-before), now
		if passes++; s.mover.tx.pending() {
			s.loop.Again(watch)
			return
		}
		close(ended)
	})
	s.on(func() {
		s.mover.tx.blocked = true
		for i := range pieces {
			s.put(i, -1, nil)
		}
		s.mover.writable()
		s.loop.Again(watch)
	})
	<-ended
	if longest > passSent+bookSize || passes < 3 {
		t.Errorf("%d bytes in one pass of %d, expected about %d", longest, passes, passSent)
	}
	got := make([]byte, len(s.want))
	if _, err := io.ReadFull(s.peer, got); err != nil || !bytes.Equal(got, s.want) {
		t.Errorf("what has come is something else (%v)", err)
	}
}
