package qtcp

import (
	"math"
	"testing"
)

// TestAhead: looks that come in time grant nothing ahead; late ones as many windows as round
// trips went by, with a bound, and that fades.
func TestAhead(t *testing.T) {
	const trip = 1_000_000
	for _, c := range []struct {
		late int64
		want float64
	}{{0, 0}, {trip / aheadLooks, 0}, {trip, 1}, {2 * trip, 2}, {100 * trip, aheadMost}} {
		var a Ahead
		a.Looked(c.late)
		if got := a.Windows(trip); got != c.want {
			t.Errorf("%d ns late: %g windows ahead, expected %g", c.late, got, c.want)
		}
		a.Looked(0)
		if got := a.Windows(trip); got > c.want || c.late == 2*trip && got <= c.want/2 {
			t.Errorf("%d ns late before the last look: %g windows ahead, expected somewhat less than %g", c.late, got, c.want)
		}
		for range 20 * aheadKept {
			a.Looked(0)
		}
		if got := a.Windows(trip); got != 0 {
			t.Errorf("%d ns late once: %g windows ahead for ever", c.late, got)
		}
	}
	if got, want := Pace(100, trip), paceGain*100*1000; math.Abs(got-want) > 1 {
		t.Errorf("100 packets in 1 ms are paced at %g a second", got)
	}
}
