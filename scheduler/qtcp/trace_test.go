package qtcp

import (
	"fmt"
	"testing"
)

// TestTrace is the discrete-time model of the thesis, slot by slot: offered 90, 60 and 30
// Gb/s on a link of 100 Gb/s, round trip 25 us, marks from 140 packets on.
func TestTrace(t *testing.T) {
	const capacity, trip, threshold = 25.0 / 3, 25.0, 140.0 // packets per us, us, packets
	offered := [3]float64{7.5, 5, 2.5}
	device := NewDevice(capacity, DefaultRatios)
	var flows [3]*Flow
	for i := range flows {
		flows[i] = settled(200, 0)
		device.Join(Class(i))
	}
	rtt, backlog := trip, 0.0
	sent := [3]float64{offered[0] * trip, offered[1] * trip, offered[2] * trip}
	for slot, want := range []struct {
		p, alpha float64
		q, w     [3]float64
		rtt, b   float64
	}{
		{0, 0, [3]float64{.556, .556, .556}, [3]float64{201, 201, 201}, 25, 166.67},
		{.1660, .0830, [3]float64{.556, .556, .556}, [3]float64{107.03, 107.03, 107.03}, 45, 112.76},
		{0, .0415, [3]float64{1.752, 1.168, .584}, [3]float64{104.81, 104.81, 61.20}, 38.532, 62.49},
		{0, .0207, [3]float64{1.532, 1.021, .874}, [3]float64{103.72, 103.72, 52.96}, 32.499, 52.08},
		{0, .0104, [3]float64{1.306, .870, .852}, [3]float64{103.19, 89.81, 44.90}, 31.249, 29.56},
	} {
		at := fmt.Sprintf("slot %d: ", slot+1)
		p := 0.0
		if backlog >= threshold {
			p = 1 - (threshold-1)/backlog
		}
		near(t, at+"p", p, want.p, 4)
		previous := rtt
		rtt = trip + backlog/capacity
		near(t, at+"R", rtt, want.rtt, 3)
		total := 0.0
		for i, f := range flows {
			q := device.Target(Class(i)) * previous / sent[i]
			near(t, at+"Q", q, want.q[i], 3)
			f.Update(p, q)
			near(t, at+"α", f.Alpha(), want.alpha, 4)
			near(t, at+"W", f.Window(), want.w[i], 2)
			sent[i] = min(f.Window(), offered[i]*rtt)
			total += sent[i]
		}
		backlog = max(0, backlog+total-capacity*rtt)
		near(t, at+"B", backlog, want.b, 2)
	}
}
