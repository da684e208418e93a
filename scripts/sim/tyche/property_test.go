package tyche

import (
	"testing"

	"pgregory.net/rapid"

	"lunar/scheduler/batch"
	"lunar/scripts/sim/kernel"
)

// TestAnyLoad: however requests are gathered, none is lost or doubled, none is faster
// than alone, the slowest stage is never more than busy, and at a low load none waits
// longer than the delay before it is sent.
func TestAnyLoad(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom([]*direction{&reads, &writes}).Draw(t, "direction")
		l := &load{
			direction: d, small: rapid.IntRange(1, 200).Draw(t, "outstanding"), packing: rapid.IntRange(1, 2).Draw(t, "packing"),
			seed: rapid.Uint64().Draw(t, "seed"),
			config: batch.Config{
				Mode: batch.Mode(rapid.IntRange(0, 2).Draw(t, "mode")), Level: rapid.IntRange(1, 64).Draw(t, "level"),
				Delay: rapid.Int64Range(0, 5e6).Draw(t, "delay"), Interval: 2e6,
			},
		}
		large := rapid.IntRange(0, 3).Draw(t, "large")
		for i := range large {
			l.kernel.After(int64(i)*1e6, kernel.Arrival, l.submitLarge)
		}
		const ns = 20e6
		l.run(ns)
		if v := l.violations(); len(v) > 0 {
			t.Fatalf("invariants: %v", v)
		}
		n := l.batch.Counters()
		done := n.Requests - uint64(l.inflight)
		if most := float64(n.Requests)*float64(d.request) + float64(n.Batches)*float64(d.message); most > ns+float64(d.cost(l.small, 1))+float64(d.request) {
			t.Fatalf("%d requests in %d messages keep the slowest stage busy for %.0f ns of %.0f", n.Requests, n.Batches, most, ns)
		}
		if large > 0 || done == 0 {
			return
		}
		fastest, slowest := 0.9*float64(d.total-d.cost(1, 1))/1e3, 1.1*float64(d.total)/1e3
		if l.latency() < fastest {
			t.Fatalf("a mean of %.2f us, expected at least %.2f", l.latency(), fastest)
		}
		queue := float64(l.small) * float64(d.cost(1, 1)) / 1e3
		if most := slowest + 2*queue + float64(l.config.Delay)/1e3; l.latency() > most {
			t.Fatalf("a mean of %.2f us with %d outstanding, expected at most %.2f", l.latency(), l.small, most)
		}
	})
}
