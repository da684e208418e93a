package haechi

import (
	"fmt"
	"slices"

	"lunar/scripts/sim/experiment"
)

// set4Periods returns the period in which set 4's background load starts or
// stops, and how many periods there are.
func (s *scale) set4Periods() (change, periods int) {
	if s.env.Reduced {
		return 8, 20
	}
	return 15, 30
}

// reserved4 is the share of the capacity that set 4 reserves.
const reserved4 = 0.8

// set4 makes a run of set 4: 80 % reserved, the background load from period 15
// on, or until then.
func (s *scale) set4(zipf, over bool, load float64, setupOf func([]Client) *Setup) ([]Client, *Outcome) {
	clients := s.greedy(s.reservations(reserved4, zipf))
	setup := setupOf(clients)
	setup.Adaptive = true
	change, periods := s.set4Periods()
	setup.Background = []Background{{Period: change, Share: load}}
	setup.Warmup, setup.Periods = 2, periods
	if !over {
		setup.Background = []Background{{Period: -setup.Warmup, Share: load}, {Period: change}}
	}
	return clients, s.simulate(setup)
}

// capacityWith is what the node serves in a period beside a background load.
func (s *scale) capacityWith(load float64) int64 {
	setup := Setup{ServerCost: oneSidedServer * s.divide, Background: []Background{{Share: load}}}
	return second / setup.costIn(0)
}

func run4OverU(env *experiment.Env) (r experiment.Result) {
	s := newScale(env)
	for _, a := range []struct {
		name    string
		setupOf func([]Client) *Setup
	}{{"", s.setup}, {"server: ", s.served}} {
		clients, out := s.set4(false, true, 0.1, a.setupOf)
		r.Model() // bare meets them, too
		r.AtLeast(a.name+"lowest N/R", "still met", out.attainment(clients), 1)
		r.Paper(estimating)
		s.settles(&r, a.name, out)
		if a.name == "" {
			r.Figures = append(r.Figures, s.periodFigure("haechi-4-over-uniform", "Haechi set 4, uniform, load begins", out))
		}
		r.Invariants(out.Violations)
	}
	return r
}

// settles appends the checks that Ω comes to what the load leaves, and stays there.
func (s *scale) settles(r *experiment.Result, name string, out *Outcome) {
	change, _ := s.set4Periods()
	target, eta := s.capacityWith(0.1), s.capacity()/100
	settled := -1
	for p := change + 1; p < len(out.Omega); p++ {
		if off := out.Omega[p] - target; off >= -eta && off <= eta {
			settled = p - change
			break
		}
	}
	r.Require(name+"periods until Ω is within η", "drops, then flat", fmt.Sprintf("1..%d", estimatorWindow+1), fmt.Sprint(settled),
		settled >= 1 && settled <= estimatorWindow+1)
	stays := true
	for p := change + estimatorWindow + 1; p < len(out.Omega); p++ {
		off := out.Omega[p] - target
		// One step up and one period's edge are the oscillation of A1 (c).
		stays = stays && off >= -2*eta && off <= 2*eta
	}
	r.Require(name+"Ω afterwards", "flat", "within 2η", map[bool]string{true: "within", false: "leaves"}[stays], stays)
}

// periodFigure plots Ω, the total and C1 by period.
func (s *scale) periodFigure(name, title string, out *Outcome) experiment.Figure {
	omega := make([]float64, len(out.Omega))
	for p, o := range out.Omega {
		omega[p] = float64(o)
	}
	return experiment.Figure{Name: name, Title: title, X: "period", Y: "KIOPS", Series: []experiment.Series{
		experiment.Line("Ω", 0, s.kilos(omega)), experiment.Line("total", 0, s.kilos(out.totals())),
		experiment.Line("C1", 0, s.kilos(out.series(0))),
	}}
}

// ratios is C1's N/R by period.
func ratios(clients []Client, out *Outcome) []float64 {
	n := out.series(0)
	for p := range n {
		n[p] /= float64(clients[0].Reservation)
	}
	return n
}

func run4OverZ(env *experiment.Env) (r experiment.Result) {
	s := newScale(env)
	change, _ := s.set4Periods()
	clients, equal := s.set4(true, true, 0.15, s.equal)
	c1 := ratios(clients, equal)
	before, after := c1[change-1], c1[change:]
	r.Model()
	r.Require("equal, 15 %, C1/R1 at the drop", "misses", "below the period before and below 1", fmt.Sprintf("%.3f, before %.3f", after[0], before),
		after[0] < before && after[0] < 1)
	last := after[len(after)-1]
	r.Paper(estimating)
	r.Require("equal, 15 %, C1/R1 afterwards", "recovers gradually", "rises while Ω sinks", fmt.Sprintf("%.3f .. %.3f, last %.3f", after[0], after[estimatorWindow], last),
		rises(after[:estimatorWindow+1]))
	r.Claim("equal, 15 %, C1/R1 at the end", "meets R again", "≥1", experiment.Num(last), last >= 1,
		"C1 comes near, but a node that serves all in turn does not give it all of R while Ω swings by η")
	r.Note("equal, 15 %, C1/R1 from, to", "", fmt.Sprintf("%.2f, %.2f", after[0], after[estimatorWindow]), "reference model: 0.82, 0.87")
	r.Figures = append(r.Figures, s.periodFigure("haechi-4-over-zipf-equal", "Haechi set 4, Zipf, equal, load begins", equal))

	clients, first := s.set4(true, true, 0.1, s.setup)
	c1 = ratios(clients, first)
	lowest, _ := bounds(c1)
	r.Paper(arbitrating)
	r.AtLeast("rprio, 10 %, lowest C1/R1", "meets R again", lowest, 1)
	_, server := s.set4(true, true, 0.1, s.served)
	lowest, _ = bounds(ratios(clients, server))
	r.Paper(gating)
	r.AtLeast("server: 10 %, lowest C1/R1", "meets R again", lowest, 1)
	r.Figures = append(r.Figures, s.periodFigure("haechi-4-over-zipf-rprio", "Haechi set 4, Zipf, rprio, load begins", first))
	r.Invariants(slices.Concat(equal.Violations, first.Violations, server.Violations))
	return r
}

// rises reports whether values never fall (a thousandth is a period's edge)
// and end higher than they began.
func rises(values []float64) bool {
	for i := 1; i < len(values); i++ {
		if values[i] < values[i-1]*0.999 {
			return false
		}
	}
	return values[len(values)-1] > values[0]
}

// climb appends the check that Ω grows by η after each period that used it up,
// from the end of the background load to the full capacity.
func (s *scale) climb(r *experiment.Result, name string, out *Outcome) {
	change, _ := s.set4Periods()
	eta := s.capacity() / 100
	totals := out.totals()
	wrong, steps := 0, 0
	for p := change; p+1 < len(out.Omega); p++ {
		if totals[p] < (1-estimatorSlack)*float64(out.Omega[p]) {
			continue
		}
		steps++
		if out.Omega[p+1]-out.Omega[p] != eta {
			wrong++
		}
	}
	r.Paper(estimating)
	r.Require(name+"growth of Ω after a period that used it up", "η", "η always", fmt.Sprintf("%d of %d", steps-wrong, steps), wrong == 0 && steps > 0)
	reached := 0.0
	for _, n := range totals[change:] {
		reached = max(reached, n/float64(s.capacity()))
	}
	r.Model()
	r.AtLeast(name+"highest total/C_G after the load", "climbs", reached, 0.99)
}

func run4UnderU(env *experiment.Env) (r experiment.Result) {
	s := newScale(env)
	change, _ := s.set4Periods()
	_, out := s.set4(false, false, 0.1, s.setup)
	_, server := s.set4(false, false, 0.1, s.served)
	s.climb(&r, "", out)
	s.climb(&r, "server: ", server)
	c1 := s.kilos(out.series(0))
	r.Require("C1, K", "rises", "higher at the end", fmt.Sprintf("%.1f → %.1f", c1[change-1], c1[len(c1)-1]), c1[len(c1)-1] > c1[change-1])
	r.Figures = append(r.Figures, s.periodFigure("haechi-4-under-uniform", "Haechi set 4, uniform, load ends", out))
	r.Invariants(append(out.Violations, server.Violations...))
	return r
}

func run4UnderZ(env *experiment.Env) (r experiment.Result) {
	s := newScale(env)
	change, _ := s.set4Periods()
	clients, first := s.set4(true, false, 0.1, s.setup)
	s.climb(&r, "", first)
	lowest, _ := bounds(ratios(clients, first))
	r.Paper(arbitrating)
	r.AtLeast("rprio, 10 %, lowest C1/R1", "stays at R", lowest, 1)
	_, server := s.set4(true, false, 0.1, s.served)
	lowest, _ = bounds(ratios(clients, server))
	r.Paper(gating)
	r.AtLeast("server: 10 %, lowest C1/R1", "stays at R", lowest, 1)
	r.Model()
	low := s.kilos(first.series(hosts - 1))
	r.Require("rprio, C10, K", "gains", "higher at the end", fmt.Sprintf("%.1f → %.1f", low[change-1], low[len(low)-1]), low[len(low)-1] > low[change-1])

	clients, equal := s.set4(true, false, 0.1, s.equal)
	c1 := ratios(clients, equal)
	low = s.kilos(equal.series(hosts - 1))
	r.Note("equal, 10 %, C1/R1 before, at the end", "stays at R", fmt.Sprintf("%.3f, %.3f", c1[change-1], c1[len(c1)-1]), "")
	r.Require("equal, C10, K", "gains", "higher at the end", fmt.Sprintf("%.1f → %.1f", low[change-1], low[len(low)-1]), low[len(low)-1] > low[change-1])
	r.Figures = append(r.Figures, s.periodFigure("haechi-4-under-zipf", "Haechi set 4, Zipf, rprio, load ends", first))
	r.Invariants(slices.Concat(first.Violations, equal.Violations, server.Violations))
	return r
}
