package tyche

import (
	"math"

	"lunar/scheduler/batch"
	"lunar/scripts/sim/experiment"
	"lunar/scripts/sim/kernel"
)

// phases is how often figure 8 adds a thread, before its last minute.
const phases = 5

// runMixed is figure 8: requests of 128 KiB, which are not batched, beside those
// of 4 KiB; with adaptive batching, two payloads in a packet, and without.
func runMixed(env *experiment.Env, d *direction) (r experiment.Result) {
	s := newScale(env)
	run := func(c batch.Config, packing int) *load {
		l := s.load(d, c, 32*perThread, packing)
		for i := range int64(phases) {
			l.kernel.After((i+1)*s.long, kernel.Arrival, l.submitLarge)
		}
		l.run((phases + 1) * s.long)
		return l
	}
	none, adaptive := run(s.off(), 1), run(s.adaptive(), 2)
	before, after := mean(none.rates), mean(adaptive.rates)
	paper := [...]string{"56.7", "91.3", "74.4"}
	r.Paper(level)
	if d == &writes {
		paper = [...]string{"", "", ""}
		r.Note("mean with batching, % of the link", "", experiment.Num(after), "")
	} else {
		r.Within("mean with batching, % of the link", "88.8", after, 86.8, 90.8)
	}
	r.Require("mean with/without batching, a gain", experiment.Num(d.mixedGain), ">1.2", experiment.Num(after/before), after > 1.2*before)
	r.Claim("mean with/without batching", experiment.Num(d.mixedGain), "±5 %", experiment.Num(after/before), math.Abs(after/before/d.mixedGain-1) <= 0.05,
		"with one stage for both sizes, those of 128 KiB bring unbatched load nearer to the link; the paper's stays where 4 KiB alone are")
	highest := func(l *load) float64 {
		top := 0.0
		for _, v := range l.rates {
			top = max(top, v)
		}
		return top
	}
	r.Note("mean without, % of the link", paper[0], experiment.Num(before), "")
	r.Note("highest with batching, % of the link", paper[1], experiment.Num(highest(adaptive)), "")
	r.Note("highest without, % of the link", paper[2], experiment.Num(highest(none)), "")
	r.Invariants(append(none.violations(), adaptive.violations()...))
	r.Figures = []experiment.Figure{
		{
			Name: "tyche-fig8-" + d.name, Title: "4 KiB and, one more at a time, 128 KiB " + d.name, X: "interval", Y: "% of the link",
			Series: []experiment.Series{experiment.Line("no batching", 1, none.rates), experiment.Line("adaptive", 1, adaptive.rates)},
		},
		s.overTime("tyche-fig8-level-"+d.name, "Batch level of the mixed load, "+d.name, adaptive),
	}
	return r
}
