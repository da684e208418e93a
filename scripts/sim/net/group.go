package net

import (
	"lunar/scheduler/qtcp"
	"lunar/scripts/sim/kernel"
)

// measured is a flow of a group.
type measured interface {
	// rate is what the flow measured, in Gb/s; 0 if it sent nothing lately.
	rate(now int64) float64
	SlowStart() bool
}

// Group is the flows that share a bottleneck, with its estimate.
type Group struct {
	Device qtcp.Device
	kernel *kernel.Kernel
	trip   int64 // ps, of a round trip
	flows  []measured

	drain   qtcp.Drain
	delayed []*governed
}

// NewGroup returns a group whose bottleneck has so many Gb/s, and whose round trips take
// trip ps. adapts says that it corrects its estimate.
func NewGroup(k *kernel.Kernel, gigabits float64, trip int64, adapts bool) *Group {
	g := &Group{Device: qtcp.NewDevice(gigabits, qtcp.DefaultRatios), kernel: k, trip: trip}
	if adapts {
		g.plan()
	}
	return g
}

func (g *Group) plan() {
	g.kernel.At(g.kernel.Now()+qtcp.EstimateEvery*g.trip, kernel.Conversion, g, 0)
}

// Fire implements kernel.Actor.
func (g *Group) Fire(now int64, _ int32) {
	sum, slow := 0.0, false
	for _, f := range g.flows {
		if rate := f.rate(now); rate > 0 {
			sum += rate
			slow = slow || f.SlowStart()
		}
	}
	g.Device.Observe(sum, slow)
	g.plan()
}

// came counts a flow that sees congestion by round trips.
func (g *Group) came(f *governed, now int64) {
	g.delayed = append(g.delayed, f)
	g.drain.Came(now / Nanosecond)
}

// holds reports whether flows that see congestion by round trips hold back.
func (g *Group) holds(now int64) bool {
	return g.drain.Holds(now/Nanosecond, len(g.delayed), func() (longest int64) {
		for _, f := range g.delayed {
			longest = max(longest, f.trip/Nanosecond)
		}
		return longest
	})
}

// stale is after how many round trips without an end of one a flow's rate is none.
const stale = 4
