package tcp

import (
	"bytes"
	"io"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"lunar/internal/eventually"
	"lunar/internal/evloop"
	"lunar/target/pdu"
)

// TestWhatLeaves: three parts leave before the end of a pass, with data or without, as many
// in the next one, and the rest later.
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
			if during > earlySends*earlyFrom || during%earlyFrom > 0 || during < earlySends*earlyFrom && len(data) == 0 {
				t.Errorf("%d bytes of data, pass %d: %d left in it, expected %d, or less of data that took long", len(data), pass, during, earlySends*earlyFrom)
			}
			eventually.Holds(t, "all have left", func() bool { return sent() == count })
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

// TestLongSendsTakeTurns: where more is to be sent than one pass has time for, connections
// send much of theirs in turns rather than a little in each pass, all have a turn, and what
// is short leaves at once.
func TestLongSendsTakeTurns(t *testing.T) {
	const each, connections, short = 2 * leastPart, 3 * passSent / (2 * leastPart), 4 << 10
	all := newShelves(t, connections+1)
	for _, s := range all {
		if err := unix.SetsockoptInt(s.mover.fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 4*each); err != nil {
			t.Skip("no socket buffer large enough: ", err)
		}
	}
	last, loop := all[connections], all[0].loop
	parts, passes, before, ended := make([]int, connections), 0, make([]uint64, connections), make(chan struct{})
	var watch evloop.Task
	watch = evloop.Func(func() {
		passes++
		pending := false
		for i, s := range all[:connections] {
			if now := s.mover.tx.total; now != before[i] {
				parts[i]++
				before[i] = now
			}
			pending = pending || s.mover.tx.pending()
		}
		if passes == 1 && last.mover.tx.pending() {
			t.Error("what is short waits for what is long")
		}
		if pending {
			loop.Again(watch)
			return
		}
		close(ended)
	})
	last.on(func() {
		for _, s := range all[:connections] {
			for range each / leastPart {
				sendBytes(s.mover, leastPart)
			}
		}
		sendBytes(last.mover, short)
		loop.Again(watch)
	})
	<-ended
	if most := slices.Max(parts); most > each/leastPart+1 {
		t.Errorf("%d bytes of a connection in %d passes, expected them in at most %d", each, most, each/leastPart+1)
	}
	if passes < 3 {
		t.Errorf("all of it left in %d passes, expected 3 at least", passes)
	}
}

// TestLongSendsGoBehindOthers: who has had a turn and has more to send goes behind those
// who wait for theirs, however much is left.
func TestLongSendsGoBehindOthers(t *testing.T) {
	const much = 8 * passSent
	all := newShelves(t, 3)
	for _, s := range all {
		if err := unix.SetsockoptInt(s.mover.fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, much); err != nil {
			t.Skip("no socket buffer large enough: ", err)
		}
	}
	left := func(s *shelf) (n int) {
		s.on(func() { n = s.mover.tx.bytes })
		return n
	}
	first, loop, ended := all[0], all[0].loop, make(chan struct{})
	var watch evloop.Task
	watch = evloop.Func(func() {
		switch waits := all[1].mover.tx.pending() || all[2].mover.tx.pending(); {
		case !first.mover.tx.pending():
			t.Errorf("all %d bytes of one connection left before %d bytes of two others", much, 2*leastPart)
			fallthrough
		case !waits:
			close(ended)
		default:
			loop.Again(watch)
		}
	})
	first.on(func() {
		for i, n := range []int{much, leastPart, leastPart} {
			for range n / leastPart {
				sendBytes(all[i].mover, leastPart)
			}
		}
		loop.Again(watch)
	})
	<-ended
	eventually.Holds(t, "all have left", func() bool { return left(first) == 0 })
}

// sendBytes sends one Data-In.
func sendBytes(m *mover, n int) {
	p := (*pdu.DataIn)(&pdu.BHS{}).Init()
	p.BHS().SetDataSegmentLength(n)
	m.PutData(p, make([]byte, n), nil)
}
