package haechi

import (
	"fmt"
	"slices"

	"lunar/scripts/sim/experiment"
)

// set3 makes the runs of set 3 with one pattern: with QoS and bare.
func (s *scale) set3(pattern Pattern, setupOf func([]Client) *Setup) (full, bare *Outcome) {
	clients := s.three(340, 80, pattern)
	for i := range clients {
		clients[i].Reservation = s.kilo(80)
		if i < 3 {
			clients[i].Reservation = s.kilo(285)
		}
	}
	setup := setupOf(clients)
	setup.Latency = true
	return s.simulate(setup), s.bare(s.three(158, 158, Burst), false)
}

func run3(env *experiment.Env) (r experiment.Result) {
	s := newScale(env)
	burst, bare := s.set3(Burst, s.setup)
	constant, _ := s.set3(Constant, s.setup)
	atOnce, _ := s.set3(Burst, s.served)
	r.Model() // as 1c-b and 1c-c without any tokens
	within(&r, "burst, C1-3, K", "miss 285", s.kilos(burst.means())[:3], 276, 4)
	drop := 1 - burst.total()/bare.total()
	r.Require("burst, drop", "12.9 %", "9..14 %", experiment.Percent(drop), drop >= 0.09 && drop <= 0.14)
	lowest, _ := bounds(s.kilos(constant.means())[:3])
	r.AtLeast("constant, lowest of C1-3, K", "exceed 285", lowest, 285)
	drop = 1 - constant.total()/bare.total()
	r.Require("constant, drop", "0.7 %", "≤1.5 %", experiment.Percent(drop), drop <= 0.015)
	lowest, _ = bounds(s.kilos(atOnce.means())[:3])
	r.Claim("server: burst, lowest of C1-3, K", "miss 285", "<285", experiment.Num(lowest), lowest < 285,
		"tokens are spread over the period (GateConfig.Lead), so that C1-3 get theirs while others still ask")
	r.Figures = append(r.Figures, clientFigure("haechi-3", "Haechi set 3: I/Os per client", s,
		named{"burst", burst}, named{"constant rate", constant}, named{"burst, server", atOnce}))
	r.Invariants(slices.Concat(burst.Violations, constant.Violations, atOnce.Violations))
	return r
}

func run3Latency(env *experiment.Env) (r experiment.Result) {
	s := newScale(env)
	burst, _ := s.set3(Burst, s.setup)
	constant, _ := s.set3(Constant, s.setup)
	r.Model()
	b, c := burst.merged(), constant.merged()
	r.Require("mean", "constant ≪ burst", "≤½ burst", times(c.Mean(), b.Mean()), c.Mean() <= b.Mean()/2)
	for _, q := range []float64{99, 99.9} {
		cq, bq := float64(c.ValueAtQuantile(q)), float64(b.ValueAtQuantile(q))
		r.Require(fmt.Sprintf("p%g", q), "constant ≪ burst", "<burst", times(cq, bq), cq < bq)
	}
	r.Invariants(append(burst.Violations, constant.Violations...))
	return r
}

// times prints two times given in ns.
func times(constant, burst float64) string {
	return fmt.Sprintf("%.3g ms, burst %.3g ms", constant/1e6, burst/1e6)
}
