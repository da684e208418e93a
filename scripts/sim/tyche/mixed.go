package tyche

import (
	"lunar/scheduler/batch"
	"lunar/scripts/sim/experiment"
	"lunar/scripts/sim/kernel"
)

// phases is how often figure 8 adds a thread, before its last minute.
const phases = 5

// leastGain is what the mean must gain by batching. The paper's is larger because its
// mean without batching is lower than this model can show: docs/reports/simulation.md,
// Deviations.
const leastGain = 1.3

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
	paper := [...]string{"56.7", "91.3, 74.4", "1.57"}
	if d == &writes {
		paper = [...]string{"", "", "up to 2"}
		r.Note("mean with batching, % of the link", "", experiment.Num(after), "")
	} else {
		r.Within("mean with batching, % of the link", "88.8", after, 86.8, 90.8)
	}
	highest := func(l *load) float64 {
		top := 0.0
		for _, v := range l.rates {
			top = max(top, v)
		}
		return top
	}
	r.Note("mean without, % of the link", paper[0], experiment.Num(before), "")
	r.Note("highest", paper[1], experiment.Num(highest(adaptive))+", "+experiment.Num(highest(none)), "")
	r.AtLeast("mean with/without batching", paper[2], after/before, leastGain)
	r.Checks[len(r.Checks)-1].Note = "with one stage for both sizes, those of 128 KiB bring unbatched load nearer to the link; the paper's stays where 4 KiB alone are"
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
