package haechi

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"lunar/scheduler/haechi"
	"lunar/scripts/sim/experiment"
)

func run2AU(env *experiment.Env) (r experiment.Result) {
	s := newScale(env)
	clients := s.greedy(s.reservations(0.9, false))
	bare := s.bare(clients, false)
	full, server := s.simulate(s.setup(clients)), s.simulate(s.served(clients))
	r.Model() // bare meets them, too
	r.AtLeast("lowest N/R, bare", "met", bare.attainment(clients), 1)
	for _, n := range []named{{"", full}, {"server: ", server}} {
		r.AtLeast(n.name+"lowest N/R", "met", n.out.attainment(clients), 1)
		loss := 1 - n.out.total()/bare.total()
		r.Require(n.name+"loss against bare", "<0.1 %", "≤0.2 %", experiment.Percent(loss), loss <= 0.002)
	}
	r.Invariants(slices.Concat(bare.Violations, full.Violations, server.Violations))
	return r
}

func run2AZ(env *experiment.Env) (r experiment.Result) {
	s := newScale(env)
	clients := s.greedy(s.reservations(0.9, true))
	bare := s.bare(clients, false)
	full := s.simulate(s.setup(clients))
	equal := s.simulate(s.equal(clients))
	capped := s.equal(clients)
	capped.LocalCap = true
	late := s.simulate(capped)

	server, more := s.simulate(s.served(clients)), s.simulate(wide(s.served(clients)))
	literal, literalFirst := s.equal(clients), s.setup(clients)
	literal.Yield, literalFirst.Yield, literalFirst.LocalCap = haechi.YieldLiteral, haechi.YieldLiteral, false
	asPrinted, asPrintedFirst := s.simulate(literal), s.simulate(literalFirst)
	first := func(o *Outcome) float64 { return o.means()[0] / float64(clients[0].Reservation) }

	r.Model()
	lowest, highest := bounds(s.kilos(bare.means()))
	r.Near("bare, lowest client, K", "≈158", lowest, 157, 0.01)
	r.Near("bare, highest client, K", "≈158", highest, 157, 0.01)
	r.Paper(arbitrating)
	r.AtLeast("rprio, lowest N/R", "met", full.attainment(clients), 0.995)
	r.Paper(gating)
	r.AtLeast("server: lowest N/R", "met", server.attainment(clients), 0.995)
	r.Model()
	r.AtLeast("rprio, total/C_G", "1", full.total()/float64(s.capacity()), 0.998)
	used := server.total() / float64(s.capacity())
	r.Claim("server: total/C_G", "1", "≥0.9980", experiment.Num(used), used >= 0.998, tooFew)
	r.AtLeast("server, window 256: total/C_G", "1", more.total()/float64(s.capacity()), 0.998)
	r.Note("rprio, pairs, K", "C5-10 lose", pairs(s.kilos(full.means())), "reference model: 236.3, 175.3, 141.7, 122.3, 109.3")
	r.Note("server: pairs, K", "C5-10 lose", pairs(s.kilos(server.means())), "")
	r.Claim("equal, C1/R1", "met", "≥0.995", experiment.Num(first(equal)), first(equal) >= 0.995,
		"a node that serves all in turn gives C1 no more than its part of every round; reference model 0.83")
	r.Within("mode literal with equal, C1/R1, as the reference model", "", first(asPrinted), 0.65, 0.69)
	r.Within("mode literal with rprio, C1/R1, as the reference model", "", first(asPrintedFirst), 0.86, 0.90)
	r.Note("equal with ξ ≤ (T−t)·C_L, C1/R1", "", experiment.Num(first(late)),
		"the cap takes from a client that is behind what it is behind with")
	r.Figures = append(r.Figures, clientFigure("haechi-2a-zipf", "Haechi 2A, Zipf: I/Os per client", s,
		named{"bare", bare}, named{"rprio", full}, named{"equal", equal}, named{"server", server}))
	r.Invariants(slices.Concat(bare.Violations, full.Violations, equal.Violations, late.Violations, server.Violations, more.Violations, asPrinted.Violations, asPrintedFirst.Violations))
	return r
}

// pairs prints the mean of each pair of clients.
func pairs(means []float64) string {
	words := make([]string, 0, hosts/2)
	for i := 0; i+1 < len(means); i += 2 {
		words = append(words, fmt.Sprintf("%.1f", (means[i]+means[i+1])/2))
	}
	return strings.Join(words, ", ")
}

type named struct {
	name string
	out  *Outcome
}

// clientFigure plots the clients' mean rates of several runs.
func clientFigure(name, title string, s *scale, runs ...named) experiment.Figure {
	f := experiment.Figure{Name: name, Title: title, X: "client", Y: "KIOPS"}
	for _, n := range runs {
		f.Series = append(f.Series, experiment.Line(n.name, 1, s.kilos(n.out.means())))
	}
	return f
}

// half is 2B: C1 and C2 ask for half of what they reserve.
func (s *scale) half(zipf bool) (clients []Client, bare, basic, full *Outcome) {
	clients = s.greedy(s.reservations(0.9, zipf), 0.5, 0.5)
	setup := s.setup(clients)
	setup.Basic = true
	return clients, s.bare(clients, false), s.simulate(setup), s.simulate(s.setup(clients))
}

func run2BU(env *experiment.Env) experiment.Result { return run2B(env, false, 1429) }

func run2BZ(env *experiment.Env) experiment.Result { return run2B(env, true, 1334) }

func run2B(env *experiment.Env, zipf bool, basicTotal float64) (r experiment.Result) {
	s := newScale(env)
	clients, bare, wasting, full := s.half(zipf)
	server, serverBasic := s.simulate(wide(s.served(clients))), s.simulate(basic(wide(s.served(clients))))
	usual := s.simulate(s.served(clients))
	for _, n := range []struct {
		name        string
		full, basic *Outcome
	}{{"", full, wasting}, {"server, window 256: ", server, serverBasic}} {
		gains := make([]float64, 0, hosts)
		for i, done := range n.full.means()[2:] {
			gains = append(gains, done/n.basic.means()[i+2])
		}
		lowest, _ := bounds(gains)
		r.Paper(converting)
		r.Require(n.name+"lowest full/basic of C3-10", ">1", ">1.01", experiment.Num(lowest), lowest > 1.01)
		r.Near(n.name+"full total, K", "≈bare", s.toKilo(n.full.total()), 1570, 0.01)
	}
	r.Model()
	r.Near("basic total, K", "wastes", s.toKilo(wasting.total()), basicTotal, 0.01)
	total := s.toKilo(usual.total())
	r.Claim("server: full total, K", "≈bare", "1570 ±1 %", experiment.Num(total), math.Abs(total-1570) <= 15.7, tooFew)
	r.Note("server, window 256: basic total, K", "wastes", experiment.Num(s.toKilo(serverBasic.total())), "")
	name := "haechi-2b-uniform"
	if zipf {
		name = "haechi-2b-zipf"
	}
	r.Figures = append(r.Figures, clientFigure(name, "Haechi 2B: I/Os per client", s,
		named{"bare", bare}, named{"basic", wasting}, named{"full", full}, named{"server", server}))
	r.Invariants(slices.Concat(bare.Violations, wasting.Violations, full.Violations, server.Violations, serverBasic.Violations, usual.Violations))
	return r
}

func runFig11(env *experiment.Env) (r experiment.Result) {
	s := newScale(env)
	f := experiment.Figure{Name: "haechi-fig11", Title: "Haechi Fig 11: total (1 uniform, 2 Zipf)", X: "reservations", Y: "KIOPS"}
	var lines [3][]float64
	var violations []string
	for _, zipf := range []bool{false, true} {
		_, bare, basic, full := s.half(zipf)
		word := map[bool]string{false: "uniform", true: "Zipf"}[zipf]
		r.Paper(converting)
		r.AtLeast(word+", full/bare", "≈1", full.total()/bare.total(), 0.99)
		r.Model()
		ratio := basic.total() / bare.total()
		r.Require(word+", basic/bare", "lower", "<0.99", experiment.Num(ratio), ratio < 0.99)
		for i, out := range []*Outcome{bare, basic, full} {
			lines[i] = append(lines[i], s.toKilo(out.total()))
			violations = append(violations, out.Violations...)
		}
	}
	for i, name := range []string{"bare", "basic", "full"} {
		f.Series = append(f.Series, experiment.Line(name, 1, lines[i]))
	}
	r.Figures = append(r.Figures, f)
	r.Invariants(violations)
	return r
}

// sweep is one line of 2C: totals in thousands by reserved share.
type sweep struct {
	totals []float64
	met    float64 // lowest N/R of all runs
}

func (s *scale) sweep(zipf bool, setupOf func([]Client) *Setup, violations *[]string) (w sweep) {
	w.met = 1e9
	for percent := 50; percent <= 90; percent += 10 {
		clients := s.greedy(s.reservations(float64(percent)/100, zipf))
		setup := setupOf(clients)
		setup.Periods = min(setup.Periods, 3)
		out := s.simulate(setup)
		w.totals = append(w.totals, s.toKilo(out.total()))
		w.met = min(w.met, out.attainment(clients))
		*violations = append(*violations, out.Violations...)
	}
	return w
}

func run2C(env *experiment.Env) (r experiment.Result) {
	s := newScale(env)
	var violations []string
	uniform := s.sweep(false, s.setup, &violations)
	zipf := s.sweep(true, s.setup, &violations)
	equal := s.sweep(true, s.equal, &violations)
	server := s.sweep(true, s.served, &violations)

	falling := true
	for i := 1; i < len(equal.totals); i++ {
		// A thousandth is the noise of one period's edge.
		falling = falling && equal.totals[i] <= equal.totals[i-1]*1.001
	}
	r.Model()
	r.Require("equal, Zipf totals, K", "drops at high reserve", "non-increasing", list(equal.totals), falling)
	r.Claim("equal, Zipf, lowest N/R", "met", "≥0.995", experiment.Num(equal.met), equal.met >= 0.995, "a node that serves all in turn, as in 2a-zipf")
	r.AtLeast("rprio, uniform, lowest N/R", "met", uniform.met, 0.995)
	r.Paper(arbitrating)
	r.AtLeast("rprio, Zipf, lowest N/R", "met", zipf.met, 0.995)
	r.Paper(gating)
	r.AtLeast("server: Zipf, lowest N/R", "met", server.met, 0.995)
	r.Model()
	lowest := 1e9
	for i := range zipf.totals {
		lowest = min(lowest, zipf.totals[i]/uniform.totals[i])
	}
	r.AtLeast("rprio, lowest Zipf/uniform", "1 at low reserve", lowest, 0.99)
	f := experiment.Figure{Name: "haechi-2c", Title: "Haechi 2C: total by reserved share", X: "reserved, tenths of C_G", Y: "KIOPS"}
	f.Series = append(f.Series, experiment.Line("uniform, rprio", 5, uniform.totals),
		experiment.Line("Zipf, rprio", 5, zipf.totals), experiment.Line("Zipf, equal", 5, equal.totals), experiment.Line("Zipf, server", 5, server.totals))
	r.Figures = append(r.Figures, f)
	r.Invariants(violations)
	return r
}

// list prints values without decimals.
func list(values []float64) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = fmt.Sprintf("%.0f", v)
	}
	return strings.Join(words, ", ")
}
