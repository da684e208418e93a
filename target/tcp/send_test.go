package tcp

import (
	"io"
	"testing"

	"golang.org/x/sys/unix"

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
