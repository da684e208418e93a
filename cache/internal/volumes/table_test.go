package volumes

import (
	"testing"
	"time"

	"lunar/backstore"
)

// TestRowAtAnyStore: of a process that ends between any two stores of a change nothing is
// found that it has not left.
func TestRowAtAnyStore(t *testing.T) {
	table := NewPrivateTable(4)
	sound := func() {
		t.Helper()
		if err := table.Check(); err != nil {
			t.Error(err)
		}
	}
	r := table.Row(2)
	for round := range uint64(2) {
		r.Give(round + 1)
		sound()
		r.Open([3]uint64{1, 2, round}, 1<<30, "volume")
		for at := atIdentity; at < rowWords; at++ {
			if at != atIdentity && at != atState && at != atAlive && at != atCheck {
				r.change(func() { r.store(at, round<<at|1); sound() })
			}
			r.Beat(time.Now().UnixNano())
			sound()
		}
		for _, state := range []uint64{rowSettling, rowSettled, backstore.Disturbed, rowClosed} {
			r.store(atState, state)
			sound()
		}
		r.Resize(1<<20, 1<<30)
		sound()
		r.Close(backstore.Stamp{State: [3]uint64{1, 2, 3}})
		sound()
		if r.load(atCheck) == 0 {
			t.Error("the row has no checksum")
		}
		r.Free()
		sound()
	}
}
