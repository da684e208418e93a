package qrdma

import "lunar/scheduler/qtcp"

// Interval is the time between two updates of a flow, in ns.
const Interval = 50_000

// DCQCN is the quality with which a flow does what DCQCN does.
const DCQCN = 1.0

// The constants of the rate's rule.
const (
	gain   = 1.0 / 16 // g: what the last interval counts in α
	fast   = 5        // F: steps of fast recovery
	lowest = 1e-3     // of the line: the lowest rate
)

// Line is what the flows of a port have in common.
type Line struct {
	Rate float64 // of the port: the highest rate of a flow
	Step float64 // R_AI: by how much a flow's target rises in an interval behind fast recovery
}

// NewLine returns a line whose flows' targets rise by a hundredth of its rate.
func NewLine(rate float64) Line { return Line{rate, rate / 100} }

// Flow is the rate of one connection. NewFlow makes one.
type Flow struct {
	qtcp.Mean         // m, of the rates at which the flow sent
	rate      float64 // RC
	target    float64 // RT: what the rate recovers to
	alpha     float64 // α
	quiet     int     // intervals since the last notification
}

// NewFlow returns a flow that begins with the rate of its line.
func NewFlow(l Line) Flow { return Flow{rate: l.Rate, target: l.Rate, alpha: 1} }

// Rate is RC: how fast the flow may send.
func (f *Flow) Rate() float64 { return f.rate }

// Target is RT: the rate that the flow recovers to.
func (f *Flow) Target() float64 { return f.target }

// Alpha is α: the smoothed share of intervals with a notification, 0 to 1.
func (f *Flow) Alpha() float64 { return f.alpha }

// Update ends an interval of a flow with the given quality. notified says that a
// congestion notification packet came. A flow with quality above 1 is in deficit and does
// what DCQCN does.
func (f *Flow) Update(l Line, notified bool, quality float64) {
	f.alpha *= 1 - gain
	if notified {
		f.alpha += gain
		f.reduce(quality)
	} else {
		f.recover(l)
	}
	f.rate = max(lowest*l.Rate, min(l.Rate, f.rate))
}

func (f *Flow) reduce(quality float64) {
	f.target = f.rate
	f.rate *= (1 - f.alpha/2) * min(1, quality)
	f.quiet = 0
}

// recover halves the way to the target; once that was done often enough, the target rises.
func (f *Flow) recover(l Line) {
	f.quiet++
	if f.quiet > fast {
		f.target = min(l.Rate, f.target+l.Step)
	}
	f.rate = (f.target + f.rate) / 2
}
