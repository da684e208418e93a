package pshift

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"lunar/scheduler/pshift"
	"lunar/scheduler/pshift/bqueue"
	"lunar/scripts/sim/experiment"
)

// threads runs parts in goroutines of their own.
func threads(parts int, work func(part int)) {
	var wg sync.WaitGroup
	for part := range parts {
		wg.Go(func() { work(part) })
	}
	wg.Wait()
}

// shifted allocates and shifts a copy of an instance.
func shifted(p *pshift.Instance, budget []int64, options pshift.Options) *pshift.Instance {
	copies, _ := timed(p, budget, 1, options)
	return copies[0]
}

// timed allocates and shifts copies of an instance with each of the options, in
// turns, as the controller does with its own. It returns the copies and the
// shortest times of a shift, for the machine may be busy. The times are of the
// real clock and decide nothing.
func timed(p *pshift.Instance, budget []int64, times int, options ...pshift.Options) ([]*pshift.Instance, []time.Duration) {
	copies := make([]*pshift.Instance, len(options))
	shortest := make([]time.Duration, len(options))
	for i := range copies {
		copies[i] = pshift.NewInstance(p.Buckets, p.Servers)
		copy(copies[i].Demand, p.Demand)
		copy(copies[i].Capacity, p.Capacity)
		shortest[i] = math.MaxInt64
	}
	for range times {
		for i, q := range copies {
			q.Allocate(budget)
			start := time.Now()
			q.Shift(options[i])
			shortest[i] = min(shortest[i], time.Since(start))
		}
	}
	return copies, shortest
}

// repeats is how often a time is measured.
func repeats(env *experiment.Env) int {
	if env.Reduced {
		return 3
	}
	return 30
}

// run2par compares serial and parallel shifting. The speed-up is judged by the
// processor time of the parts, since that by the clock is as much the machine's:
// another program that has one of two processors leaves nothing to speed up with.
// Times have a criterion at full size only.
func run2par(env *experiment.Env) (r experiment.Result) {
	s := newSize(env)
	two := pshift.Options{Run: threads, Parts: 2}
	for _, reserved := range []float64{0.9, 1} {
		for _, m := range []float64{1.1, 2} {
			p, budget := instance(s.servers, s.buckets, s.iops*5, reserved, m, placeZipf, env.Seed)
			copies, times := timed(p, budget, repeats(env), pshift.Options{}, two)
			alone, together := times[0], times[1]
			name := fmt.Sprintf("r=%g m=%g, ", reserved, m)
			same := slices.Equal(copies[0].Tokens, copies[1].Tokens)
			r.Model()
			r.Require(name+"parallel and serial tokens", "", "equal", map[bool]string{true: "equal", false: "differ"}[same], same)
			speedup := alone.Seconds() / together.Seconds()
			took := fmt.Sprintf("%.0f ms, 2 threads %.0f ms: %.2f×", alone.Seconds()*1e3, together.Seconds()*1e3, speedup)
			if env.Reduced {
				r.Note(name+"time", "tens of ms with 12 threads", took, "no criterion at this size")
				continue
			}
			r.Require(name+"time", "tens of ms with 12 threads", "≤3 s serial", took, alone <= 3*time.Second)
			two, handed := amdahl(p, budget, 2, repeats(env))
			twelve, _ := amdahl(p, budget, 12, repeats(env)/3)
			r.AtLeast(name+"2 threads, by the work of each, times", "", two, 1.4)
			r.Claim(name+"12 threads, by the work of each, times", "up to 5", "4 to 6", experiment.Num(twelve), twelve >= 4 && twelve <= 6,
				fmt.Sprintf("the work is done %d times in parts here, each with a hand-over of 10 us", handed))
		}
	}
	return r
}

func runFig7(env *experiment.Env) (r experiment.Result) {
	sizes := []int{100, 200, 300, 400, 500, 600, 700, 800, 900, 1000}
	servers := 64
	if env.Reduced {
		sizes, servers = []int{100, 200, 400}, 16
	}
	f := experiment.Figure{Name: "pshift-fig7", Title: "pShift Fig 7: run time", X: "buckets", Y: "ms", LogX: true, LogY: true}
	f.Series = []experiment.Series{{Name: "pShift"}, {Name: "bQueue (own maximum flow)"}}
	same := true
	for _, n := range sizes {
		p, budget := instance(servers, n, 100_000, 1, 1.1, placeZipf, env.Seed)
		q, took := shifted(p, budget, pshift.Options{}), time.Duration(math.MaxInt64)
		for range repeats(env) {
			q.Allocate(budget)
			took = min(took, worked(func() { q.Shift(pshift.Options{}) }))
		}
		var routed int64
		flow := worked(func() {
			_, routed = bqueue.Solve(bqueue.Problem{Budget: budget, Demand: p.Demand, Capacity: p.Capacity})
		})
		same = same && routed == q.Effective()
		f.Series[0].Points = append(f.Series[0].Points, experiment.Point{X: float64(n), Y: took.Seconds() * 1e3})
		f.Series[1].Points = append(f.Series[1].Points, experiment.Point{X: float64(n), Y: flow.Seconds() * 1e3})
	}
	r.Model()
	r.Require("effective tokens and maximum flow", "", "equal", map[bool]string{true: "equal", false: "differ"}[same], same)
	exponent, ours := exponent(f.Series[0].Points), f.Series[0].Points[len(sizes)-1].Y
	measured := fmt.Sprintf("%.2f (%.0f ms at %d)", exponent, ours, sizes[len(sizes)-1])
	if env.Reduced {
		r.Note("growth of pShift, exponent", "linear", measured, "no criterion at this size")
	} else {
		r.Require("growth of pShift, exponent", "linear", "≤1.3", measured, exponent <= 1.3)
	}
	theirs := f.Series[1].Points[len(sizes)-1].Y
	r.Note("own maximum flow / pShift at the largest size", "quadratic; 2–3 min at 10,000", fmt.Sprintf("%.2f", theirs/ours), "the minutes are the paper's implementation's")
	r.Figures = append(r.Figures, f)
	return r
}

// exponent is the slope of the least squares line through the logarithms.
func exponent(points []experiment.Point) float64 {
	var sx, sy, sxx, sxy float64
	for _, p := range points {
		x, y := math.Log(p.X), math.Log(p.Y)
		sx, sy, sxx, sxy = sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	n := float64(len(points))
	return (n*sxy - sx*sy) / (n*sxx - sx*sx)
}

func runFig6(env *experiment.Env) (r experiment.Result) {
	s := newSize(env)
	// Reduced, a server has 1,000 buckets instead of 1,250.
	tops, exponents, half, all := []int{100, 200, 500, 1000, 2000, 5000}, []float64{0, 0.1, 0.25, 0.5, 1, 2}, 500, 2000
	if env.Reduced {
		tops, exponents, half, all = []int{400, 1600}, []float64{0, 1}, 400, 1600
	}
	f := experiment.Figure{Name: "pshift-fig6", Title: "pShift Fig 6: removable weak excess that top-M removes", X: "M", Y: "%", LogX: true}
	for _, exponent := range exponents {
		p, budget := instance(s.servers, s.buckets, s.iops*5, 1, 1.1, exponent, env.Seed)
		q := pshift.NewInstance(p.Buckets, p.Servers)
		copy(q.Demand, p.Demand)
		copy(q.Capacity, p.Capacity)
		q.Allocate(budget)
		before := q.WeakExcess()
		shift := func(options pshift.Options) *pshift.Instance {
			if !env.Decides(shifting) {
				return q
			}
			return shifted(p, budget, options)
		}
		full := shift(pshift.Options{Run: threads, Parts: 2})
		removable := before - full.WeakExcess()
		series := experiment.Series{Name: fmt.Sprintf("s = %g", exponent)}
		for _, m := range tops {
			top := shift(pshift.Options{TopM: m, Run: threads, Parts: 2})
			share := 0.0
			if removable > 0 {
				share = float64(before-top.WeakExcess()) / float64(removable)
			}
			series.Points = append(series.Points, experiment.Point{X: float64(m), Y: share * 100})
			name := fmt.Sprintf("s=%g, M=%d, removed", exponent, m)
			r.Paper(shifting)
			switch m {
			case all:
				r.Require(name, "all", "100 %", experiment.Percent(share), share >= 1)
			case half:
				r.Require(name, ">70 %", "≥90 %", experiment.Percent(share), share >= 0.9)
			}
		}
		f.Series = append(f.Series, series)
		topSpeed(env, &r, p, budget, exponent, half)
	}
	r.Figures = append(r.Figures, f)
	return r
}

// topSpeed is figure 6(b): how much faster a shift is with the top M buckets alone.
func topSpeed(env *experiment.Env, r *experiment.Result, p *pshift.Instance, budget []int64, exponent float64, m int) {
	q := shifted(p, budget, pshift.Options{})
	took := func(options pshift.Options) time.Duration {
		shortest := time.Duration(math.MaxInt64)
		for range max(3, repeats(env)/6) {
			q.Allocate(budget)
			shortest = min(shortest, worked(func() { q.Shift(options) }))
		}
		return shortest
	}
	speedup := took(pshift.Options{}).Seconds() / took(pshift.Options{TopM: m}).Seconds()
	name := fmt.Sprintf("s=%g, M=%d, faster than with all buckets, times", exponent, m)
	if env.Reduced {
		r.Note(name, "another 5", experiment.Num(speedup), "no criterion at this size")
		return
	}
	r.Model()
	r.Claim(name, "another 5", "≥4", experiment.Num(speedup), speedup >= 4, "to find the top M of a server takes about as long as the map of all of them")
}
