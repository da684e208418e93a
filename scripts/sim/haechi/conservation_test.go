package haechi

import (
	"testing"

	"pgregory.net/rapid"

	"lunar/scheduler"
	"lunar/scheduler/haechi"
)

// drawSetup draws a small cluster whose reservations the node and the clients can keep.
func drawSetup(rt *rapid.T) *Setup {
	s := &Setup{
		ServerCost: rapid.Int64Range(400_000, 2_000_000).Draw(rt, "server cost"),
		ClientCost: rapid.Int64Range(400_000, 4_000_000).Draw(rt, "client cost"),
		Batch:      rapid.Int64Range(1, 40).Draw(rt, "batch"),
		QoS:        rapid.IntRange(0, 4).Draw(rt, "QoS") > 0,
		Basic:      rapid.IntRange(0, 4).Draw(rt, "basic") == 0,
		Adaptive:   rapid.Bool().Draw(rt, "adaptive"),
		LocalCap:   rapid.Bool().Draw(rt, "local cap"),
		Yield:      rapid.SampledFrom([]haechi.YieldMode{haechi.YieldIdle, haechi.YieldLiteral, haechi.YieldDemand}).Draw(rt, "yield"),
		Arbitration: rapid.SampledFrom([]scheduler.Arbitration{
			scheduler.ReservedFirst, scheduler.EqualShare}).Draw(rt, "arbitration"),
		Warmup: rapid.IntRange(0, 1).Draw(rt, "warm-up"), Periods: 3,
	}
	left := s.profile()
	for range rapid.IntRange(1, 6).Draw(rt, "clients") {
		c := Client{
			Reservation: rapid.Int64Range(0, min(left/2, second/s.ClientCost)).Draw(rt, "reservation"),
			Demand:      rapid.Int64Range(0, 4000).Draw(rt, "demand"),
			Pattern:     rapid.SampledFrom([]Pattern{Closed, Burst, Constant}).Draw(rt, "pattern"),
		}
		left -= c.Reservation
		s.Clients = append(s.Clients, c)
	}
	if rapid.IntRange(0, 3).Draw(rt, "background") == 0 {
		s.Background = []Background{{Period: 1, Share: 0.3}}
	}
	return s
}

// TestConservation: whatever the cluster is, tokens and requests add up: no period
// issues more than its tokens, no client gets I/Os that it did not ask for or that its NIC
// cannot receive, and the node serves no more than it can.
func TestConservation(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawSetup(rt)
		out := Simulate(s)
		for _, v := range out.Violations {
			rt.Error(v)
		}
		got := make([]int64, len(s.Clients))
		for period, done := range out.Done {
			served := int64(0)
			for i, n := range done {
				got[i] += n
				served += n
				if most := second/s.ClientCost + window; n > most {
					rt.Errorf("period %d: client %d received %d I/Os, its NIC can %d", period, i, n, most)
				}
			}
			if most := s.profile() + window*int64(len(s.Clients)) + 1; served > most {
				rt.Errorf("period %d: %d I/Os were served, the node can %d", period, served, most)
			}
		}
		for i, c := range s.Clients {
			if most := c.Demand * int64(s.Warmup+s.Periods); c.Pattern != Closed && got[i] > most {
				rt.Errorf("client %d got %d I/Os and asked for %d", i, got[i], most)
			}
		}
	})
}
