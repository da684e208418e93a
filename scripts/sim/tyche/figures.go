package tyche

import (
	"fmt"
	"math"

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

// level is the decision how many requests leave together; the stub lets each leave alone.
const level experiment.Decision = "batch.Level: the adaptive batch level"

// adaptive is Tyche's configuration, static one with a fixed level.
func (s *scale) adaptive() batch.Config {
	if !s.env.Decides(level) {
		return s.off()
	}
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
	r.Wiring()
	r.Within("reads, % of the link (fitted)", "56", l.run(s.short), 55, 57)
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
				r.Model()
				r.AtLeast("static 64 at 4 outstanding, us", "poor at low load", l.latency(), 5000)
			}
		}
		l := s.load(d, s.adaptive(), n, 1)
		results[4] = l.run(s.long)
		violations = append(violations, l.violations()...)
		longest = l
		best := max(results[1], results[2], results[3])
		what := fmt.Sprintf("%d outstanding: ", n)
		if r.Model(); n >= 32 { // below, batching gains nothing
			r.Paper(level)
		}
		r.Require(what+"adaptive/best static", "≥0.92", "≥0.92", experiment.Num(results[4]/best), results[4] >= 0.92*best)
		r.Note(what+"none, static 2, 8, 64, adaptive, % of the link", "", fmt.Sprintf("%.1f, %.1f, %.1f, %.1f, %.1f", results[0], results[1], results[2], results[3], results[4]), "")
		more := (results[4]/results[0] - 1) * 100
		gain, peak = max(gain, more), max(peak, results[4])
		if n == 32 {
			at32 = more
		}
		for i := range lines {
			lines[i].Points = append(lines[i].Points, experiment.Point{X: float64(n), Y: results[i]})
		}
	}
	r.Wiring()
	r.Within("peak, % of the link (fitted)", experiment.Num(d.peak), peak, d.peak-2, d.peak+2)
	r.Paper(level)
	const why = "the costs under load are fitted to the peaks alone"
	r.Claim("highest gain in %", experiment.Num(d.gain), "±3 points", experiment.Num(gain), math.Abs(gain-d.gain) <= 3, why)
	r.Claim("gain at 32 outstanding in %", experiment.Num(d.gainAt32), "±3 points", experiment.Num(at32), math.Abs(at32-d.gainAt32) <= 3, why)
	r.Invariants(violations)
	r.Figures = []experiment.Figure{
		{Name: "tyche-fig5-" + d.name, Title: "Throughput of 4 KiB " + d.name, X: "outstanding", Y: "% of the link", LogX: true, Series: lines},
		s.overTime("tyche-level-"+d.name, "Batch level from the start on, 512 outstanding "+d.name, longest),
	}
	return r
}

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
		before, first, at := 0.0, 0.0, map[int]float64{}
		for _, threads := range s.threads {
			l := s.load(d, s.adaptive(), threads*perThread, 1)
			l.run(s.long)
			violations = append(violations, l.violations()...)
			level, what := l.level(), fmt.Sprintf("%s, %d outstanding", d.name, threads*perThread)
			if d == &reads {
				r.Model()
				r.AtLeast(what, "rises", level, before)
			} else {
				r.Note(what, "", experiment.Num(level), "")
			}
			if first == 0 {
				first = level
			}
			before, at[threads*perThread] = level, level
			line.Points = append(line.Points, experiment.Point{X: float64(threads * perThread), Y: level})
		}
		figure.Series = append(figure.Series, line)
		r.Paper(level)
		r.Require(d.name+", level at 512 outstanding against 4", "rises", "≥8 times", experiment.Num(before/first), before >= 8*first)
		if d == &writes {
			r.Claim("writes, level at 128 outstanding against 4", "flat to 256", "≤2 times", experiment.Num(at[128]/first), at[128] <= 2*first,
				"the level follows what waits and what larger messages gain, and one stage gains as much of writes as of reads")
		}
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
		r.Wiring()
		r.Within(d.name+", % of the link (fitted)", experiment.Num(d.packedPeak), after, d.packedPeak-2, d.packedPeak+2)
		r.Paper(level)
		gain := (after/before - 1) * 100
		r.Claim(d.name+", gain in %", experiment.Num(d.packedGain), "±3 points", experiment.Num(gain), math.Abs(gain-d.packedGain) <= 3,
			"the costs under load are fitted to the peaks alone")
	}
	r.Invariants(violations)
	return r
}
