package tyche

import (
	"fmt"

	"lunar/scheduler/batch"
	"lunar/scripts/sim/experiment"
)

// perThread is how many requests each thread keeps outstanding.
const perThread = 4

// scale is a run's length: reduced, everything but the delay is ten times quicker.
type scale struct {
	env      *experiment.Env
	interval int64
	long     int64 // a run in which the level adapts, ns
	short    int64 // one in which nothing changes
	threads  []int
}

func newScale(env *experiment.Env) *scale {
	s := &scale{env: env, interval: 1e9, long: 60e9, short: 2e9, threads: []int{1, 2, 4, 8, 16, 32, 64, 128}}
	if env.Reduced {
		s.interval, s.long, s.short = 1e8, 4e9, 4e8
		s.threads = []int{1, 8, 32, 128}
	}
	return s
}

// adaptive is Tyche's configuration, static one with a fixed level.
func (s *scale) adaptive() batch.Config {
	return batch.Config{Mode: batch.Adaptive, Delay: batch.TycheDelay, Interval: s.interval}
}

func (s *scale) static(level int) batch.Config {
	return batch.Config{Mode: batch.Static, Level: level, Delay: batch.TycheDelay, Interval: s.interval}
}

func (s *scale) off() batch.Config { return batch.Config{Interval: s.interval} }

// load returns a run of so many outstanding.
func (s *scale) load(d *direction, c batch.Config, outstanding, packing int) *load {
	return &load{direction: d, config: c, small: outstanding, packing: packing, seed: s.env.Seed, log: experiment.NewLog(s.env.Log)}
}

// runUnbatched is figure 1's row of 4 KiB.
func runUnbatched(env *experiment.Env) (r experiment.Result) {
	s := newScale(env)
	l := s.load(&reads, s.off(), 128*perThread, 1)
	r.Within("reads, % of the link", "56", l.run(s.short), 55, 57)
	r.Near("100 % in GiB/s", "1.2", linkRequests*smallRequest/float64(1<<30), 1.2, 0.01)
	one := s.load(&reads, s.off(), 1, 1)
	one.run(s.short)
	r.Near("one outstanding, us", "53.38", one.latency(), 53.38, 0.01)
	r.Invariants(append(l.violations(), one.violations()...))
	return r
}

// judged are the static levels that adaptive ones are compared with.
var judged = []int{2, 8, 64}

// runLevels is figure 5: adaptive levels against none and static ones.
func runLevels(env *experiment.Env, d *direction) (r experiment.Result) {
	s := newScale(env)
	var violations []string
	lines := []experiment.Series{{Name: "no batching"}, {Name: "static 2"}, {Name: "static 8"}, {Name: "static 64"}, {Name: "adaptive"}}
	gain, at32, peak := 0.0, 0.0, 0.0
	var longest *load
	for _, threads := range s.threads {
		n := threads * perThread
		configs := []batch.Config{s.off()}
		for _, level := range judged {
			configs = append(configs, s.static(level))
		}
		results := make([]float64, len(lines))
		for i, c := range configs {
			l := s.load(d, c, n, 1)
			results[i] = l.run(s.short)
			violations = append(violations, l.violations()...)
			if n == perThread && c.Level == 64 {
				r.AtLeast("static 64 at 4 outstanding, us", "poor at low load", l.latency(), 5000)
			}
		}
		l := s.load(d, s.adaptive(), n, 1)
		results[4] = l.run(s.long)
		violations = append(violations, l.violations()...)
		longest = l
		best := max(results[1], results[2], results[3])
		r.Require(fmt.Sprintf("%d outstanding: adaptive/best static", n), "≥0.92", "≥0.9",
			fmt.Sprintf("%.3f (%s of the link; none %s)", results[4]/best, percent(results[4]), percent(results[0])), results[4] >= 0.9*best)
		more := (results[4]/results[0] - 1) * 100
		gain, peak = max(gain, more), max(peak, results[4])
		if n == 32 {
			at32 = more
		}
		for i := range lines {
			lines[i].Points = append(lines[i].Points, experiment.Point{X: float64(n), Y: results[i]})
		}
	}
	r.Within("peak, % of the link (fitted)", experiment.Num(d.peak), peak, d.peak-2, d.peak+2)
	r.Note("highest gain in %", map[*direction]string{&reads: "44.2", &writes: "49.5"}[d], experiment.Num(gain), "")
	r.Note("gain at 32 outstanding in %", map[*direction]string{&reads: "28.1", &writes: "35.8"}[d], experiment.Num(at32), "")
	r.Invariants(violations)
	r.Figures = []experiment.Figure{
		{Name: "tyche-fig5-" + d.name, Title: "Throughput of 4 KiB " + d.name, X: "outstanding", Y: "% of the link", LogX: true, Series: lines},
		s.overTime("tyche-level-"+d.name, "Batch level from the start on, 512 outstanding "+d.name, longest),
	}
	return r
}

func percent(v float64) string { return fmt.Sprintf("%.1f %%", v) }

// overTime plots the level, and the throughput, of each interval.
func (s *scale) overTime(name, title string, l *load) experiment.Figure {
	return experiment.Figure{
		Name: name, Title: title, X: "interval", Y: "level; % of the link",
		Series: []experiment.Series{experiment.Line("batch level", 1, l.levels), experiment.Line("throughput", 1, l.rates)},
	}
}

// runLevelByLoad is figure 6.
func runLevelByLoad(env *experiment.Env) (r experiment.Result) {
	s := newScale(env)
	figure := experiment.Figure{Name: "tyche-fig6", Title: "Batch level by load", X: "outstanding", Y: "batch level", LogX: true}
	var violations []string
	for _, d := range []*direction{&reads, &writes} {
		line := experiment.Series{Name: d.name}
		before := 0.0
		for _, threads := range s.threads {
			l := s.load(d, s.adaptive(), threads*perThread, 1)
			l.run(s.long)
			violations = append(violations, l.violations()...)
			level, what := l.level(), fmt.Sprintf("%s, %d outstanding", d.name, threads*perThread)
			if d == &reads {
				r.AtLeast(what, "rises", level, before)
			} else {
				r.Note(what, "flat to 256, then rises", experiment.Num(level), "")
			}
			before = level
			line.Points = append(line.Points, experiment.Point{X: float64(threads * perThread), Y: level})
		}
		figure.Series = append(figure.Series, line)
	}
	r.Invariants(violations)
	r.Figures = []experiment.Figure{figure}
	return r
}

// runPacked is figure 7: data batching on top.
func runPacked(env *experiment.Env) (r experiment.Result) {
	s := newScale(env)
	var violations []string
	for _, d := range []*direction{&reads, &writes} {
		none, packed := s.load(d, s.off(), 128*perThread, 1), s.load(d, s.adaptive(), 128*perThread, 2)
		before, after := none.run(s.short), packed.run(s.long)
		violations = append(violations, append(none.violations(), packed.violations()...)...)
		r.Within(d.name+", % of the link (fitted)", experiment.Num(d.packedPeak), after, d.packedPeak-2, d.packedPeak+2)
		r.Note(d.name+", gain in %", map[*direction]string{&reads: "56.9", &writes: "53"}[d], experiment.Num((after/before-1)*100), "")
	}
	r.Invariants(violations)
	return r
}
