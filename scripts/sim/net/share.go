package net

import (
	"fmt"
	"math"

	"lunar/scheduler/qtcp"
	"lunar/scripts/sim/experiment"
)

var classes = [qtcp.Classes]string{qtcp.High: "High", qtcp.Medium: "Medium", qtcp.Low: "Low"}

// shares are rates of the classes in Gb/s that are expected, and what the thesis says.
type shares struct {
	rates     []float64
	paper     [qtcp.Classes]string
	tolerance float64 // Gb/s
}

// near requires rates to be near to those that are expected, because of a decision. Medium
// gets about as much without it. A decision "" is none.
func (s shares) near(r *experiment.Result, d experiment.Decision, what string, got []float64) {
	for c, w := range s.rates {
		if r.Model(); d != "" && qtcp.Class(c) != qtcp.Medium {
			r.Paper(d)
		}
		expected := fmt.Sprintf("%s ±%g", experiment.Num(w), s.tolerance)
		r.Require(what+classes[c], s.paper[c], expected, experiment.Num(got[c]), math.Abs(got[c]-w) <= s.tolerance)
	}
}

func sum(rates []float64) (s float64) {
	for _, x := range rates {
		s += x
	}
	return s
}

// settle is how many slots runs have before something is measured.
const settle = 1000

// slotRates are the rates of three classes in the discrete-time model, trip in us.
func slotRates(r Rule, trip float64, n int) []float64 {
	s := newSlots(100, trip, three(r)...)
	s.run(settle)
	return s.run(n)
}

// packetRates are the same with packets, trip in ps.
func packetRates(env *experiment.Env, r Rule, step bool) []float64 {
	b := newBottleneck(25*Microsecond, step, true)
	for c, gigabits := range offered {
		b.add(b.control(r, qtcp.Class(c)), gigabits)
	}
	if env.Reduced {
		b.rates(10 * Millisecond)
		return b.rates(20 * Millisecond)
	}
	b.rates(50 * Millisecond)
	return b.rates(200 * Millisecond)
}

var (
	printed = shares{[]float64{49.9, 33.3, 16.8}, [...]string{"49.9", "33.3", "16.8"}, 1.5}
	plain   = shares{[]float64{35, 35, 30}, [...]string{"≈33", "≈33", "30"}, 1.5}
	rated   = shares{[]float64{47.9, 33.6, 18.5}, printed.paper, 2}
	dcqcn   = shares{rates: []float64{34.8, 34.8, 29.9}, tolerance: 2}
)

func runModel(env *experiment.Env) (r experiment.Result) {
	rule := ruleOf(env, QTCP)
	model, packets := slotRates(rule, 25, 2000), packetRates(env, rule, false)
	printed.near(&r, quality, "model, Gb/s: ", model)
	printed.near(&r, quality, "packets, Gb/s: ", packets)
	r.Model()
	r.AtLeast("model, Gb/s in all", "", sum(model), 99)
	r.AtLeast("packets, Gb/s in all", "", sum(packets), 99)
	shares{rates: model, paper: printed.paper, tolerance: 1.5}.near(&r, "", "packets against the model, Gb/s: ", packets)
	hard := packetRates(env, rule, true)
	r.Note("packets, a switch that marks all from K on, Gb/s", "", triple(hard),
		"α is smoothed by g = 0.5 and a cut shows in the marks a round trip later, so that flows cut twice")
	return r
}

func triple(x []float64) string { return fmt.Sprintf("%.1f : %.1f : %.1f", x[0], x[1], x[2]) }

func runPlain(env *experiment.Env) (r experiment.Result) {
	plain.near(&r, "", "model, Gb/s: ", slotRates(DCTCP, 25, 2000))
	packets := packetRates(env, DCTCP, false)
	r.Note("packets, Gb/s", "33 : 33 : 30", triple(packets), "")
	return r
}

func runRates(env *experiment.Env) (r experiment.Result) {
	rates := slotRates(ruleOf(env, QRDMA), interval, 9*settle)
	rated.near(&r, quick, "Gb/s: ", rates)
	dcqcn.near(&r, "", "DCQCN, Gb/s: ", slotRates(DCQCN, interval, 9*settle))
	for _, rule := range []Rule{QRDMA, DCQCN} {
		r.Note(rule.String()+" with packets, Gb/s", "", triple(packetRates(env, rule, false)), "feedback is up to 75 us old, in the model none")
	}
	return r
}

// runRatio gives four greedy flows 1 : 1.5 : 2 : 3.
func runRatio(env *experiment.Env) (r experiment.Result) {
	ratios := []float64{1, 1.5, 2, 3}
	var flows []*slotFlow
	for _, ratio := range ratios {
		flows = append(flows, &slotFlow{rule: ruleOf(env, QRDMA), offered: 100 * gigabit, ratio: ratio / sum(ratios)})
	}
	s := newSlots(100, interval, flows...)
	s.run(settle)
	got := s.run(9 * settle)
	for i, ratio := range ratios {
		if r.Model(); ratio != 2 { // it gets about a quarter without quality, too
			r.Paper(quick)
		}
		r.Near(fmt.Sprintf("Gb/s of the flow with ratio %g", ratio), "about", got[i], 100*ratio/sum(ratios), 0.15)
	}
	return r
}
