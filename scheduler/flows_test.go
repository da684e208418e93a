package scheduler

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Whichever queues close, the others are told of in the order in which they were opened.
func TestFlowsAreInOrderOfOpening(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var f flows
	var open []*Queue
	for range 2000 {
		if i := rng.IntN(16); i < len(open) {
			f.remove(open[i])
			open = slices.Delete(open, i, i+1)
		} else {
			q := &Queue{}
			f.add(q)
			open = append(open, q)
		}
		if got := slices.Collect(f.all()); !slices.Equal(got, open) {
			t.Fatalf("found %d queues in another order than expected, %d", len(got), len(open))
		}
	}
}

// BenchmarkClose is the end of a session that has 256 LUNs, beside 1,000 of its kind.
func BenchmarkClose(b *testing.B) {
	const luns = 256
	g := NewGate(0, GateConfig{Window: 4, Threads: 1})
	devices := make([]*Device, luns)
	for i := range devices {
		devices[i] = &Device{}
	}
	open := func() (all []*Queue) {
		for i, d := range devices {
			all = append(all, g.Open(Flow{Initiator: "a", LUN: uint64(i)}, d, 0))
		}
		return all
	}
	var sessions [][]*Queue
	for range 1000 {
		sessions = append(sessions, open())
	}
	for i := 0; b.Loop(); i++ {
		for _, q := range sessions[i%len(sessions)] {
			g.Close(q, 0)
		}
		b.StopTimer()
		sessions[i%len(sessions)] = open()
		b.StartTimer()
	}
}
