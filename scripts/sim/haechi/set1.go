package haechi

import (
	"fmt"

	"lunar/scheduler"
	"lunar/scripts/sim/experiment"
)

// closed is n clients that always keep their window full.
func closed(n int) []Client {
	clients := make([]Client, n)
	for i := range clients {
		clients[i].Pattern = Closed
	}
	return clients
}

// bare makes a run without QoS, one-sided or two-sided.
func (s *scale) bare(clients []Client, twoSided bool) *Outcome {
	setup := s.setup(clients)
	setup.QoS, setup.Arbitration, setup.Periods = false, scheduler.EqualShare, min(setup.Periods, 3)
	if twoSided {
		setup.ClientCost, setup.ServerCost = twoSidedClient*s.divide, twoSidedServer*s.divide
	}
	return s.simulate(setup)
}

func run1A(env *experiment.Env) (r experiment.Result) {
	s := newScale(env)
	r.Wiring()
	one, two := s.bare(closed(1), false), s.bare(closed(1), true)
	r.Near("one-sided, K", "≈400", s.toKilo(one.total()), 400, 0.01)
	r.Near("two-sided, K", "≈327", s.toKilo(two.total()), 327, 0.01)
	r.Invariants(append(one.Violations, two.Violations...))
	return r
}

func run1B(env *experiment.Env) (r experiment.Result) {
	s := newScale(env)
	r.Wiring()
	var violations []string
	figure := experiment.Figure{Name: "haechi-1b", Title: "Haechi 1B: throughput by number of clients", X: "clients", Y: "KIOPS"}
	for _, side := range []struct {
		name string
		two  bool
		want []float64
	}{{"one-sided", false, []float64{400, 800, 1200, 1570}}, {"two-sided", true, []float64{327, 427, 427}}} {
		line := make([]float64, hosts)
		for n := 1; n <= hosts; n++ {
			out := s.bare(closed(n), side.two)
			violations = append(violations, out.Violations...)
			line[n-1] = s.toKilo(out.total())
			if n <= len(side.want) {
				r.Near(fmt.Sprintf("%s, %d clients, K", side.name, n), Kilo(side.want[n-1]), line[n-1], side.want[n-1], 0.01)
			}
		}
		r.Near(side.name+", 10 clients, K", Kilo(side.want[len(side.want)-1]), line[hosts-1], side.want[len(side.want)-1], 0.01)
		figure.Series = append(figure.Series, experiment.Line(side.name, 1, line))
	}
	r.Figures = append(r.Figures, figure)
	r.Invariants(violations)
	return r
}

// Kilo prints thousands of I/Os per second.
func Kilo(k float64) string { return fmt.Sprintf("%.0f", k) }

// three is C1-3 with one demand and C4-10 with another, thousands per second.
func (s *scale) three(high, low float64, pattern Pattern) []Client {
	clients := make([]Client, hosts)
	for i := range clients {
		clients[i] = Client{Demand: s.kilo(low), Pattern: pattern}
		if i < 3 {
			clients[i].Demand = s.kilo(high)
		}
	}
	return clients
}

func run1Ca(env *experiment.Env) (r experiment.Result) {
	s := newScale(env)
	r.Model()
	out := s.bare(s.three(158, 158, Burst), false)
	lowest, highest := bounds(s.kilos(out.means()))
	r.Near("lowest client, K", "≈157", lowest, 157, 0.01)
	r.Near("highest client, K", "≈157", highest, 157, 0.01)
	r.Near("total, K", "1570", s.toKilo(out.total()), 1570, 0.01)
	r.Invariants(out.Violations)
	return r
}

func run1Cb(env *experiment.Env) (r experiment.Result) {
	s := newScale(env)
	r.Model()
	out := s.bare(s.three(340, 80, Burst), false)
	means := s.kilos(out.means())
	within(&r, "C1-3, K", "278", means[:3], 276, 4)
	within(&r, "C4-10, K", "≈80", means[3:], 80, 1)
	within(&r, "total, K", "1380", []float64{s.toKilo(out.total())}, 1389, 15)
	r.Invariants(out.Violations)
	return r
}

func run1Cc(env *experiment.Env) (r experiment.Result) {
	s := newScale(env)
	r.Model()
	out := s.bare(s.three(340, 80, Constant), false)
	lowest, _ := bounds(s.kilos(out.means())[:3])
	r.AtLeast("lowest of C1-3, K", "332", lowest, 326)
	r.AtLeast("total, K", "1564", s.toKilo(out.total()), 1550)
	r.Invariants(out.Violations)
	return r
}

// within appends a check that all values are within tolerance of want.
func within(r *experiment.Result, name, paper string, values []float64, want, tolerance float64) {
	lowest, highest := bounds(values)
	measured := fmt.Sprintf("%.1f..%.1f", lowest, highest)
	r.Require(name, paper, fmt.Sprintf("%.0f±%.0f", want, tolerance), measured, lowest >= want-tolerance && highest <= want+tolerance)
}

func bounds(values []float64) (lowest, highest float64) {
	lowest, highest = values[0], values[0]
	for _, v := range values {
		lowest, highest = min(lowest, v), max(highest, v)
	}
	return lowest, highest
}
