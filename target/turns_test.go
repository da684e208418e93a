package target

import (
	"testing"

	"lunar/target/pdu"
)

// TestTurns: the work of a pass is done whoever wants it, and divided among all who do.
func TestTurns(t *testing.T) {
	for _, n := range []int{1, 3, 16} {
		s := &shares{loop: holdingThread(t).loop}
		done := make([]int, n)
		for i := range n {
			own := new(share)
			own.deliver = func() { // of one who has sent pings without end
				var ping pdu.BHS
				for ping.SetOpcode(pdu.OpNOPOut); !s.spent(own, &ping); done[i]++ {
					s.count(own, &ping, 0)
				}
			}
			s.line = s.enlist(s.line, own)
		}
		s.Run()
		sum := 0
		for _, got := range done {
			sum += got
			if part := passWork / n; got < part-turnWork || got > part+turnWork {
				t.Errorf("one of %d has done %d, expected about %d", n, got, part)
			}
		}
		if sum != passWork {
			t.Errorf("%d have done %d of %d in a pass", n, sum, passWork)
		}
	}
}
