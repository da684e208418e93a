package target

import "testing"

// mover moves parts without end, as a copy in memory does.
type mover struct {
	of    *moves
	part  int64
	moved int64
}

func (m *mover) Run() {
	for m.of.take(m.part, m) {
		m.moved += m.part
	}
}

// TestWithinIsDividedIntoPasses: what is moved within the server is bounded in a pass,
// however many commands do so, each gets its turn, and who comes late waits behind them.
func TestWithinIsDividedIntoPasses(t *testing.T) {
	const part, passes = 64 << 10, 240
	for _, n := range []int{1, 3, 60} {
		w := &moves{loop: holdingThread(t).loop}
		all := make([]*mover, n)
		for i := range all {
			all[i] = &mover{of: w, part: part}
			all[i].Run()
		}
		moved := func() (sum int64) {
			for _, m := range all {
				sum += m.moved
			}
			return sum
		}
		for range passes {
			w.pass = -1 // the loop's clock stands still
			before := moved()
			if w.Run(); moved()-before > passWithin {
				t.Fatalf("%d: %d bytes in a pass, expected at most %d", n, moved()-before, passWithin)
			}
		}
		for _, m := range all {
			if fair := int64((passes + 1) * passWithin / n); m.moved < fair-2*passWithin || m.moved > fair+2*passWithin {
				t.Errorf("one of %d has moved %d bytes, expected about %d", n, m.moved, fair)
			}
		}
		w.pass = -1
		if late := (&mover{of: w, part: part}); w.take(part, late) {
			t.Error("who comes late goes before those who wait")
		}
	}
}

// TestWithinMayBeOwed: one large piece is done at once, and made up for.
func TestWithinMayBeOwed(t *testing.T) {
	w := &moves{loop: holdingThread(t).loop}
	m := &mover{of: w, part: 3 * passWithin}
	w.pass = -1
	m.Run()
	for pass := range 9 {
		w.pass = -1
		w.Run()
		if want := m.part * int64(1+(pass+1)/3); m.moved != want {
			t.Errorf("%d bytes after %d further passes, expected %d", m.moved, pass+1, want)
		}
	}
}
