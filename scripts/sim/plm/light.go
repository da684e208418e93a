package plm

import (
	"fmt"
	"sort"

	"lunar/scheduler/plm"
	"lunar/scripts/sim/experiment"
	"lunar/scripts/sim/kernel"
)

// The decisions of PLMLight. Their stubs send all writes to the slow device, and let
// everybody read at once.
const (
	excess experiment.Decision = "plm.Writes: what exceeds a window goes to the fast device"
	shares experiment.Decision = "plm.Reads: who reads in a window"
)

// What PLMLight's model is made of: requests per window of 1 ms; us that a write to the
// fast device takes; how likely a request meets background work.
const (
	perWindow = 100
	meets     = .1
)

// workload is what three processes do.
type workload struct {
	reads  float64 // share of reads
	mixed  bool    // 4 to 128 KiB instead of 4 KiB
	capped bool    // shares do not exceed what a class is predicted to ask
	plain  bool    // an SSD alone
}

// request is one of them.
type request struct {
	at    float64 // in the window, 0 to 1
	class plm.Class
	read  bool
	size  int64
}

// latencies are those of reads and writes by class, in us.
type latencies struct{ reads, writes [classes][]float64 }

func (w *workload) run(env *experiment.Env) (l latencies) {
	r := kernel.NewRand(env.Seed, 6)
	windows := 40_000
	if env.Reduced {
		windows /= 4
	}
	writes := plm.Writes{PerWindow: plm.BasisOf(int64(perWindow*(1-w.reads) + .5))}
	if w.mixed {
		writes.Large = 64 << 10
	}
	reads := plm.Reads{PerWindow: plm.BasisOf(int64(perWindow*w.reads + .5))}
	predictor := plm.NewPredictor([classes]float64{perWindow * w.reads / 3, perWindow * w.reads / 3, perWindow * w.reads / 3})
	late := func() float64 { return deterministic + r.ExpFloat64()*background }
	chance := func() float64 {
		if r.Float64() < meets {
			return late()
		}
		return deterministic
	}
	for range windows {
		writes.Begin()
		reads.Begin()
		var asked plm.Counts
		for _, q := range w.window(r) {
			nd := env.Decides(excess) && writes.Spent()
			switch {
			case w.plain && q.read:
				l.reads[q.class] = append(l.reads[q.class], chance())
			case w.plain:
				l.writes[q.class] = append(l.writes[q.class], chance())
			case !q.read && !env.Decides(excess):
				l.writes[q.class] = append(l.writes[q.class], chance())
			case !q.read:
				writes.Slow(q.size)
				l.writes[q.class] = append(l.writes[q.class], deterministic)
			default:
				asked[q.class]++
				way := reads.Take(q.class)
				if w.capped && float64(asked[q.class]) > predictor.Expected()[q.class] && way == plm.Now {
					way = plm.Anyhow
				}
				var t float64
				switch {
				case !env.Decides(shares):
					t = chance()
				case way == plm.Now && !nd:
					t = deterministic
				case way == plm.Now:
					t = chance()
				case way == plm.Anyhow:
					t = late()
				default: // until the slow device works, in us
					t = max(0, .8-q.at)*1000 + late()
				}
				l.reads[q.class] = append(l.reads[q.class], t)
			}
		}
		predictor.Asked(asked)
	}
	return l
}

// window draws the requests of one.
func (w *workload) window(r interface {
	Float64() float64
	ExpFloat64() float64
	IntN(int) int
}) (all []request) {
	for at := r.ExpFloat64() / perWindow; at < 1; at += r.ExpFloat64() / perWindow {
		q := request{at: at, class: plm.Class(r.IntN(classes)), read: r.Float64() < w.reads, size: 4096}
		if w.mixed {
			q.size *= int64(1 + r.IntN(32))
		}
		all = append(all, q)
	}
	return all
}

// The percentiles of the figures.
var percentiles = []float64{90, 92, 95, 97, 99, 99.9}

// at returns percentiles in us.
func at(values []float64) map[float64]float64 {
	sort.Float64s(values)
	p := map[float64]float64{}
	for _, q := range percentiles {
		p[q] = values[int(q/100*float64(len(values)))]
	}
	return p
}

// list prints percentiles.
func list(p map[float64]float64) (text string) {
	for i, q := range percentiles {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%.0f", p[q])
	}
	return text
}

// compare runs a workload with PLMLight and on an SSD alone, and lists all percentiles.
func (w workload) compare(env *experiment.Env, r *experiment.Result) (l, base latencies) {
	l = w.run(env)
	w.plain = true
	base = w.run(env)
	for i, name := range names {
		r.Note("reads of "+name+", us at p90, 92, 95, 97, 99, 99.9", "", list(at(l.reads[i]))+"; SSD alone "+list(at(base.reads[i])), "")
	}
	return l, base
}

// runLight1 is workload I: 30 % reads of 4 KiB.
func runLight1(env *experiment.Env) (r experiment.Result) {
	l, base := workload{reads: .3}.compare(env, &r)
	high, alone := at(l.reads[plm.High]), at(base.reads[plm.High])
	r.Paper(shares)
	r.AtMost("High's p95 by that of a deterministic read", "below an SSD alone", high[95]/deterministic, 1)
	r.AtMost("High's p99 by an SSD alone", "below", high[99]/alone[99], .7)
	for _, c := range []plm.Class{plm.Medium, plm.Low} {
		r.AtLeast(names[c]+"'s p95 by an SSD alone", "above", at(l.reads[c])[95]/at(base.reads[c])[95], 1.05)
	}
	var writes [classes]float64
	for i := range writes {
		writes[i] = at(l.writes[i])[99]
	}
	r.Paper(excess)
	r.AtMost("p99 of writes by an SSD alone", "us where it takes ms", max(writes[0], writes[1], writes[2])/at(base.writes[0])[99], .05)
	r.Model()
	r.AtMost("spread of the classes' writes at p99", "alike", max(writes[0], writes[1], writes[2])/min(writes[0], writes[1], writes[2])-1, .1)
	return r
}

// runLight2 is workload II: 70 % reads of 4 to 128 KiB.
func runLight2(env *experiment.Env) (r experiment.Result) {
	l, base := workload{reads: .7, mixed: true}.compare(env, &r)
	high, alone := at(l.reads[plm.High]), at(base.reads[plm.High])
	r.Paper(shares)
	r.AtMost("High's p99 by an SSD alone", "0.2", high[99]/alone[99], .2)
	r.AtMost("High's p99.9 by an SSD alone", "0.45", high[99.9]/alone[99.9], .5)
	return r
}

// runCapped has shares that do not exceed what is predicted: the gain is lost.
func runCapped(env *experiment.Env) (r experiment.Result) {
	l, base := workload{reads: .3, capped: true}.compare(env, &r)
	r.Model()
	r.AtLeast("High's p99 by an SSD alone, shares capped at the prediction", "", at(l.reads[plm.High])[99]/at(base.reads[plm.High])[99], 1)
	return r
}
