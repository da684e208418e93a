package net

import (
	"math"

	"lunar/scheduler/qrdma"
	"lunar/scheduler/qtcp"
	"lunar/scripts/sim/kernel"
)

// Rated is the Control of RDMA: DCQCN, or QRDMA.
type Rated struct {
	qrdma.Flow
	Rule  Rule // DCQCN or QRDMA
	Class qtcp.Class
	Group *Group

	line     qrdma.Line
	flow     *Flow
	bytes    int64 // acknowledged before the interval
	notified bool
}

// NewRated returns the control of a flow of a class, on a port of so many Gb/s.
func NewRated(rule Rule, c qtcp.Class, g *Group, gigabits float64) *Rated {
	line := qrdma.NewLine(gigabits)
	r := &Rated{Flow: qrdma.NewFlow(line), Rule: rule, Class: c, Group: g, line: line}
	g.Device.Join(c)
	g.flows = append(g.flows, r)
	g.kernel.At(g.kernel.Now()+qrdma.Interval*Nanosecond, kernel.TokenTick, r, 0)
	return r
}

// Window implements Control.
func (r *Rated) Window() float64 { return math.Inf(1) }

// Gap implements Control.
func (r *Rated) Gap(bytes int) int64 { return int64(float64(bytes) * 8000 / r.Flow.Rate()) }

// Lost implements Control.
func (r *Rated) Lost() { r.notified = true }

// SlowStart implements measured: there is none.
func (r *Rated) SlowStart() bool { return false }

func (r *Rated) rate(int64) float64 { return r.Measured() }

// Acknowledged implements Control. The receiver of a marked packet sends a notification,
// of which all but the first in an interval change nothing.
func (r *Rated) Acknowledged(_ int64, f *Flow, p *Packet) {
	r.flow = f
	r.notified = r.notified || p.Marked
}

// Fire implements kernel.Actor: an interval ends.
func (r *Rated) Fire(now int64, _ int32) {
	r.Group.kernel.At(now+qrdma.Interval*Nanosecond, kernel.TokenTick, r, 0)
	if r.flow == nil {
		return
	}
	r.Measure(float64(r.flow.Acked-r.bytes) * 8 / qrdma.Interval)
	r.bytes = r.flow.Acked
	r.Update(r.line, r.notified, r.quality())
	r.notified = false
}

func (r *Rated) quality() float64 {
	if r.Rule == DCQCN {
		return qrdma.DCQCN
	}
	return r.Quality(r.Group.Device.Target(r.Class))
}
