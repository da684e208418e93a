package tcp

import (
	"testing"

	"golang.org/x/sys/unix"

	"lunar/target/pdu"
)

// TestResponsesLeaveAtTheLevel: within a pass so many responses of a connection
// leave as the level says, as soon as one more is ready; the others at its end.
func TestResponsesLeaveAtTheLevel(t *testing.T) {
	for _, tt := range []struct{ level, responses, during int }{
		{1, 5, 4}, {4, 4, 0}, {4, 5, 4}, {4, 9, 8}, {64, 10, 0},
	} {
		s := newShelf(t)
		sent := func() (n int) {
			n, err := unix.IoctlGetInt(int(s.peer.Fd()), unix.TIOCINQ)
			if err != nil {
				t.Fatal(err)
			}
			return n / pdu.BHSLength
		}
		var during int
		s.on(func() {
			s.r.batch = tt.level
			for range tt.responses {
				var p pdu.SCSIResponse
				s.mover.SendControl(p.Init().BHS(), nil, nil)
			}
			during = sent()
		})
		s.on(func() {}) // a pass later
		if after := sent(); during != tt.during || after != tt.responses {
			t.Errorf("level %d: %d of %d responses left at once, expected %d, and %d in the end", tt.level, during, tt.responses, tt.during, after)
		}
		s.peer.Close()
	}
}

// TestPartsOfAResponseAreOne: Data-In without a status are not counted.
func TestPartsOfAResponseAreOne(t *testing.T) {
	s := newShelf(t)
	defer s.peer.Close()
	var ready int
	s.on(func() {
		s.r.batch = 4
		for i := range 12 {
			var p pdu.DataIn
			p.Init()
			p.SetHasStatus(i%4 == 3)
			s.mover.PutData(&p, nil, nil)
		}
		ready = s.mover.tx.ready
	})
	if ready != 3 {
		t.Errorf("%d responses counted in 12 Data-In of 3 commands", ready)
	}
}
