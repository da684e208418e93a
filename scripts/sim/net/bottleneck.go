package net

import (
	"lunar/scheduler/qtcp"
	"lunar/scripts/sim/kernel"
)

// bottleneck is flows of packets, each from a port of its own over a switch to one link of
// 100 Gb/s.
type bottleneck struct {
	kernel kernel.Kernel
	group  *Group
	link   *Link
	flows  []*Flow
	trip   int64 // ps
}

// newBottleneck returns one without flows. step says that the link marks all packets from
// K on, and not the share of the discrete-time model.
func newBottleneck(trip int64, step, adapts bool) *bottleneck {
	b := &bottleneck{trip: trip}
	b.group = NewGroup(&b.kernel, 100, trip, adapts)
	b.link = NewLink(&b.kernel, PerByte(100), Propagation)
	b.link.Mark, b.link.Step = threshold, step
	return b
}

// control returns the control of a flow of a class.
func (b *bottleneck) control(r Rule, c qtcp.Class) Control {
	if r.rated() {
		return NewRated(r, c, b.group, 100)
	}
	return NewWindowed(r, c, b.group)
}

// add starts a flow that offers so many Gb/s.
func (b *bottleneck) add(c Control, gigabits float64) *Flow {
	port := NewLink(&b.kernel, PerByte(100), Propagation+Switching)
	way := 2*Propagation + Switching + 2*MTU*PerByte(100)
	f := NewFlow(&b.kernel, c, []*Link{port, b.link}, b.trip-way)
	f.Pace = int64(MTU * 8000 / gigabits)
	b.flows = append(b.flows, f)
	f.SendEndless(true)
	return f
}

// rates runs for so many ps, and returns the rate of each flow in Gb/s.
func (b *bottleneck) rates(ps int64) []float64 {
	rates := make([]float64, len(b.flows))
	for i, f := range b.flows {
		rates[i] = -float64(f.Acked)
	}
	b.kernel.Run(b.kernel.Now() + ps)
	for i, f := range b.flows {
		rates[i] = (rates[i] + float64(f.Acked)) * 8000 / float64(ps)
	}
	return rates
}
