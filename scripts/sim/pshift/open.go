package pshift

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"lunar/scripts/sim/experiment"
)

// upToTwo is experiment 1's number of demand changes of a bucket.
func upToTwo(r *rand.Rand) int { return r.IntN(3) }

func run1(env *experiment.Env) (r experiment.Result) {
	s := newSize(env)
	setup := s.open(8, upToTwo, env.Seed)
	out := s.simulate(setup)
	plain := *setup
	plain.Mode = RoundRobin
	without := s.simulate(&plain)
	met := 1 - missing(setup, out, 0.95)
	r.Paper(division)
	r.Require("buckets with at least 95 % of R", "99.5 %", "≥99.5 %", experiment.Percent(met), met >= 0.995)
	r.Note("without QoS", "", experiment.Percent(1-missing(setup, without, 0.95)), "reference model 94.9 %")
	r.Figures = append(r.Figures, progressFigure(setup, out))
	r.Invariants(append(out.Violations, without.Violations...))
	return r
}

// progressFigure plots the share of R done by the end of each interval for the
// smallest, the median and the largest bucket.
func progressFigure(setup *Setup, out *Outcome) experiment.Figure {
	order := make([]int, len(setup.Buckets))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return int(setup.Buckets[a].Reservation - setup.Buckets[b].Reservation)
	})
	f := experiment.Figure{Name: "pshift-1", Title: "pShift 1: progress of buckets", X: "interval", Y: "I/Os done / R"}
	for _, b := range []struct {
		name string
		id   int
	}{{"smallest", order[0]}, {"median", order[len(order)/2]}, {"largest", order[len(order)-1]}} {
		line := make([]float64, len(out.Progress))
		for k, done := range out.Progress {
			line[k] = float64(done[b.id]) / float64(setup.Buckets[b.id].Reservation)
		}
		f.Series = append(f.Series, experiment.Line(b.name, 1, line))
	}
	return f
}

// grid is experiment 2's: 16 servers and 2,000 buckets at both sizes, for it
// makes 75 runs; reduced with fewer points and one run each.
type grid struct {
	*size
	active  []int
	changes []int
	runs    uint64
}

func newGrid(env *experiment.Env) *grid {
	g := &grid{size: newSize(env), active: []int{2, 4, 8}, changes: []int{0, 1, 2, 5, 10}, runs: 5}
	g.servers, g.buckets = 16, 2_000
	if env.Reduced {
		g.active, g.changes, g.runs = []int{2, 8}, []int{0, 1}, 1
	}
	return g
}

// point is the mean share of buckets that miss 5 % of R or more.
func (g *grid) point(active, changes int, mode Mode, violations *[]string) float64 {
	sum := 0.0
	for k := range g.runs {
		setup := g.open(active, func(*rand.Rand) int { return changes }, g.env.Seed+k)
		setup.Mode = mode
		out := g.simulate(setup)
		*violations = append(*violations, out.Violations...)
		sum += missing(setup, out, 0.95)
	}
	return sum / float64(g.runs)
}

func run2(env *experiment.Env) (r experiment.Result) {
	g := newGrid(env)
	var violations []string
	f := experiment.Figure{Name: "pshift-2", Title: "pShift 2: error by demand changes", X: "changes", Y: "buckets that miss 5 % of R, %"}
	errors := map[int][]float64{}
	for _, active := range g.active {
		series := experiment.Series{Name: fmt.Sprintf("%d active servers", active)}
		for _, changes := range g.changes {
			e := g.point(active, changes, Shifting, &violations)
			errors[active] = append(errors[active], e)
			series.Points = append(series.Points, experiment.Point{X: float64(changes), Y: e * 100})
		}
		f.Series = append(f.Series, series)
		flow := g.point(active, 0, MaxFlow, &violations)
		got := errors[active][0]
		r.Model()
		r.Require(fmt.Sprintf("error, %d active, no change", active), "intrinsic", fmt.Sprintf("max-flow's %s ±0.5 points", experiment.Percent(flow)),
			experiment.Percent(got), got <= flow+0.005 && got >= flow-0.005)
	}
	r.Model()
	for k, changes := range g.changes[1:] {
		two, eight := errors[2][k+1], errors[8][k+1]
		r.Require(fmt.Sprintf("error, %d changes, 2 active and 8", changes), "falls with active servers", "2 active ≥ 8 active",
			experiment.Percent(two)+" and "+experiment.Percent(eight), two >= eight)
	}
	r.Paper(division)
	worst := slices.Max(errors[8])
	r.Require("largest error with 8 active", "≈0 above 8", "≤0.5 %", experiment.Percent(worst), worst <= 0.005)
	grows := errors[2][len(errors[2])-1] >= errors[2][1]
	r.Model()
	r.Claim("error by changes, 2 active", "grows, then levels", "at the end as high as with one change", percents(errors[2]), grows,
		"the error has its peak at one or two changes and falls then: who moves often is seldom long where it is short")
	r.Figures = append(r.Figures, f)
	r.Invariants(violations)
	return r
}

func percents(shares []float64) string {
	text := ""
	for i, s := range shares {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%.2f %%", s*100)
	}
	return text
}
