package plm

import (
	"slices"

	"lunar/scheduler/plm"
	"lunar/scripts/sim/experiment"
	"lunar/scripts/sim/kernel"
)

// What a read takes, in us: in a deterministic window, and more than that beyond its share,
// on average.
const (
	deterministic = 80
	background    = 2000
)

// division is the decision who reads how much in a deterministic window. The stub gives
// every class the same.
const division experiment.Decision = "plm.Plan: the division of a window's reads"

// prediction is the decision what classes will read. The stub expects their means.
const prediction experiment.Decision = "plm.Predictor: what classes will read"

// coordinated is a run of PLMC.
type coordinated struct {
	data    dataSet
	config  configuration
	mode    plm.Mode
	rule    plm.Rule
	oracle  bool // knows what will be asked (HoD)
	lag     [classes]int
	untimed bool // shares alone, no latencies
}

// outcome is what a run measured, by class.
type outcome struct {
	used, beyond [classes][]float64 // of each window
	p90          [classes][]float64 // of each window with reads, us
	latency      [classes][]float64 // of all reads, us
	excess       int                // windows in which more was given than there is
}

func (c *coordinated) run(env *experiment.Env) (o outcome) {
	plan := plm.Plan{Reads: int64(c.config.capacity * c.data.sum()), Means: c.data.means, Mode: c.mode, Rule: c.rule}
	predictor := plm.NewPredictor(c.data.means)
	r := kernel.NewRand(env.Seed, 4)
	for _, asked := range c.data.trace(env.Seed, c.config.windows(env.Reduced), c.lag) {
		expected := predictor.Expected()
		if c.oracle {
			for i, n := range asked {
				expected[i] = float64(n)
			}
		}
		given := plan.Allocate(expected)
		if !env.Decides(division) {
			given = plm.Counts{plan.Reads / 3, plan.Reads / 3, plan.Reads / 3}
		}
		if given.Sum() > plan.Reads {
			o.excess++
		}
		for i, n := range asked {
			u, v := plm.Use(given[i], n)
			o.used[i], o.beyond[i] = append(o.used[i], u), append(o.beyond[i], v)
			if !c.untimed {
				o.time(i, n, given[i], r)
			}
		}
		if env.Decides(prediction) {
			predictor.Asked(asked)
		}
	}
	return o
}

// time draws how long the n reads of a class in a window take, of which its share is
// deterministic.
func (o *outcome) time(class int, n, share int64, r interface{ ExpFloat64() float64 }) {
	from := len(o.latency[class])
	for k := range n {
		l := float64(deterministic)
		if k >= share {
			l += r.ExpFloat64() * background
		}
		o.latency[class] = append(o.latency[class], l)
	}
	if n > 0 {
		o.p90[class] = append(o.p90[class], quantile(slices.Clone(o.latency[class][from:]), .9))
	}
}

// quantile returns the value below which a share of the values lies. It sorts them.
func quantile(values []float64, share float64) float64 {
	slices.Sort(values)
	return values[min(len(values)-1, int(share*float64(len(values))))]
}

// all returns the 90th percentiles of all reads by class, in us.
func (o *outcome) all() (p [classes]float64) {
	for i := range p {
		p[i] = quantile(slices.Clone(o.latency[i]), .9)
	}
	return p
}

// perWindow returns the means of the windows' 90th percentiles by class, in us.
func (o *outcome) perWindow() (p [classes]float64) {
	for i := range p {
		for _, v := range o.p90[i] {
			p[i] += v
		}
		p[i] /= float64(len(o.p90[i]))
	}
	return p
}
