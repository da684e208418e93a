package qtcp

import "math"

// The constants of the window's rule.
const (
	gain    = 0.5  // g: what the last round trip counts in α
	epsilon = 0.01 // ε: an α up to this is no congestion
)

// DCTCP is the quality with which a flow does what DCTCP does.
const DCTCP = 1.0

// Flow is the congestion window of one connection. NewFlow makes one.
type Flow struct {
	Mean            // m, of rates or of latencies
	window  float64 // W, packets
	alpha   float64 // α
	slow    bool    // slow start: no congestion so far
	cutLast bool    // UpdateWeighed cut in the last round trip
}

// NewFlow returns a flow in slow start with a window of so many packets, at least 1.
func NewFlow(window float64) Flow { return Flow{window: max(1, window), slow: true} }

// Window is W: how many packets may be unacknowledged, at least 1.
func (f *Flow) Window() float64 { return f.window }

// Alpha is α: the smoothed share of marked acknowledgements, 0 to 1.
func (f *Flow) Alpha() float64 { return f.alpha }

// SlowStart reports whether the flow has seen no congestion so far. Its rate is then no
// measure of the bottleneck.
func (f *Flow) SlowStart() bool { return f.slow }

// Lateness is Q of a flow that should have at most the latency target.
func (f *Flow) Lateness(target float64) float64 {
	if f.measured == 0 {
		return DCTCP
	}
	return f.measured / target
}

// Round is what a flow saw in one round trip.
type Round struct {
	Delivered int64   // packets acknowledged
	Marked    int64   // of them, those that a switch had marked
	Rate      float64 // at which data were delivered
}

// Round ends a round trip of a flow that should get the rate target. One in which nothing
// was delivered says nothing.
func (f *Flow) Round(r Round, target float64) {
	if r.Delivered > 0 {
		f.Measure(r.Rate)
		f.Update(float64(r.Marked)/float64(r.Delivered), f.Quality(target))
	}
}

// Update ends a round trip in which share of the acknowledgements were marked, of a flow
// with the given quality.
func (f *Flow) Update(share, quality float64) {
	if f.grow(share) {
		return
	}
	f.cut((1 - f.alpha/2) * min(1, quality))
}

// UpdateWeighed is Update on real networks, whose marks say that a queue is too long and not
// how long, and come a round trip late: it lets the window grow by weight packets, which is
// Device.Weight, so that flows that are cut alike have windows as their shares are. It cuts for
// congestion only in round trips that had some; in those after it, until α has gone down, who
// has more than its share makes way for that. It does not cut in two round trips in a row: marks
// and rate of the second are those of packets that had left before the first cut. With Update the
// shares of three classes behind a queue that marks all from a length on are 37, 31 and 20 instead
// of 50, 33 and 17 %; with a cut in each round trip, over a long way, they leave a fifth unused.
func (f *Flow) UpdateWeighed(share, quality, weight float64) {
	f.notice(share)
	again := f.cutLast
	f.cutLast = false
	switch {
	case f.alpha <= epsilon && f.slow:
		f.window *= 2
	case f.alpha > epsilon && (share > 0 || quality < 1):
		if again {
			return
		}
		f.cutLast = true
		if share > 0 {
			f.cut(1 - f.alpha/2)
		}
		f.cut(min(1, quality))
	default:
		f.window += weight
	}
}

// Excess is the share of a round trip's packets that count as marked where nothing marks: what
// a queue that holds packets for so long has beyond one that holds them as long as allowed. It
// is that of the thesis' model, whose switch marks packets by the length of its queue.
func Excess(queued, allowed int64) float64 {
	if queued <= allowed {
		return 0
	}
	return 1 - float64(allowed)/float64(queued)
}

// UpdateD2TCP is Update by D2TCP: flows that are late give way less. lateness is the
// measured delay divided by the target.
func (f *Flow) UpdateD2TCP(share, lateness float64) {
	if f.grow(share) {
		return
	}
	f.cut(1 - math.Pow(f.alpha, lateness)/2)
}

// Use tells how many packets the flow has use for. The window becomes no larger: a flow
// that does not fill its window learns nothing of what the network bears.
func (f *Flow) Use(packets float64) { f.window = max(1, min(f.window, packets)) }

// grow takes share into α, and reports whether the window grew because there is no
// congestion.
func (f *Flow) grow(share float64) bool {
	f.notice(share)
	if f.alpha > epsilon {
		return false
	}
	if f.slow {
		f.window *= 2
	} else {
		f.window++
	}
	return true
}

// notice takes share into α.
func (f *Flow) notice(share float64) {
	f.alpha = (1-gain)*f.alpha + gain*share
	f.slow = f.slow && f.alpha <= epsilon
}

func (f *Flow) cut(factor float64) { f.window = max(1, f.window*factor) }
