package plm

import (
	"fmt"

	"lunar/scheduler/plm"
	"lunar/scripts/sim/experiment"
)

var names = [classes]string{"High", "Medium", "Low"}

// runUse judges how well the shares fit.
func runUse(env *experiment.Env) (r experiment.Result) {
	for _, d := range dataSets {
		c := coordinated{data: d, config: configurations[0], mode: plm.Literal, untimed: true}
		cod := c.run(env)
		c.oracle = true
		hod := c.run(env)
		for i, name := range names {
			what := d.name + ", " + name + ": share that is used, "
			r.Paper(division)
			r.AtLeast(what+"median", "100 %", quantile(cod.used[i], .5), .9)
			r.Within(what+"p10", "much lower than HoD's", quantile(cod.used[i], .1), .3, .5)
			r.AtLeast(what+"p10 with an oracle", "100 %", quantile(hod.used[i], .1), 1)
		}
		r.Model()
		r.AtMost(d.name+": windows with more reads given than there are", "", float64(cod.excess+hod.excess), 0)
	}
	return r
}

// runBeyond judges how much goes beyond the shares.
func runBeyond(env *experiment.Env) (r experiment.Result) {
	r.Model() // the same with equal shares: half of a bursty trace's windows are below the mean
	for _, d := range dataSets {
		for n, config := range configurations {
			o := (&coordinated{data: d, config: config, untimed: true}).run(env)
			for i, name := range names {
				r.AtMost(fmt.Sprintf("%s, configuration %d, %s: part beyond the share, median", d.name, n+1, name), "small", quantile(o.beyond[i], .5), 0)
			}
		}
	}
	return r
}

// p90s prints microseconds by class.
func p90s(p [classes]float64) string { return fmt.Sprintf("%.0f, %.0f, %.0f", p[0], p[1], p[2]) }

const traceOurs = "the paper's traces are not published; this one swings alike in all classes, and what goes beyond a share takes 2 ms more on average in each of them"

// runOrder judges who waits longest.
func runOrder(env *experiment.Env) (r experiment.Result) {
	for _, rule := range []struct {
		name, paper, oracle string
		rule                plm.Rule
	}{{"strict", "548, 773, 6589", "417, 924, 7155", plm.Strict}, {"fixed", "", "", plm.Fixed}} {
		c := coordinated{data: dataSets[0], config: configurations[1], mode: plm.Literal, rule: rule.rule}
		o := c.run(env)
		p := o.perWindow()
		r.Paper(division)
		r.Require(rule.name+", literal: windows' p90 in us, High < Medium < Low", rule.paper, "ascending", p90s(p), p[0] < p[1] && p[1] < p[2])
		r.Note(rule.name+", literal: p90 of all reads in us", "", p90s(o.all()), "")
		c.oracle = true
		h := c.run(env)
		r.Note(rule.name+", oracle: windows' p90 in us", rule.oracle, p90s(h.perWindow()), traceOurs)
	}
	return r
}

// runOracle compares with one that knows what comes.
func runOracle(env *experiment.Env) (r experiment.Result) {
	c := coordinated{data: dataSets[0], config: configurations[1]}
	cod := c.run(env)
	c.oracle = true
	hod := c.run(env)
	p, h := cod.perWindow(), hod.perWindow()
	r.Paper(prediction)
	r.AtMost("High's p90 by that of the oracle", "1.31", p[0]/h[0], 1.35)
	r.Paper(division)
	r.Claim("Low's p90 by High's", "12", "≥2", experiment.Num(p[2]/p[0]), p[2] >= 2*p[0], traceOurs)
	r.Require("High's p90 below Medium's, that below Low's", "548, 773, 6589", "ascending", p90s(p), p[0] < p[1] && p[1] < p[2])
	r.Note("oracle: windows' p90 in us", "417, 924, 7155", p90s(h), "")
	r.Note("p90 of all reads in us, without and with the oracle", "", p90s(cod.all())+"; "+p90s(hod.all()), "")
	return r
}

// runLag moves the classes' bursts apart.
func runLag(env *experiment.Env) (r experiment.Result) {
	c := coordinated{data: dataSets[0], config: configurations[0], oracle: true}
	together := c.run(env)
	c.lag = [classes]int{0, 2, 4} // windows of 100 ms
	apart := c.run(env)
	t, a := together.perWindow(), apart.perWindow()
	r.Paper(division)
	r.Claim("Low's p90 apart by together", "1/30", "≤0.5", experiment.Num(a[2]/t[2]), a[2] <= t[2]/2, "bursts of this trace last five windows, so that two or four windows later most of a burst still meets the others'")
	r.Model() // with equal shares Low has no disadvantage either
	r.Claim("Low's p90 by High's, apart", "alike", "≤1.35", experiment.Num(a[2]/a[0]), a[2] <= 1.35*a[0], "bursts that still meet are Low's to bear")
	r.Note("windows' p90 in us, together", "", p90s(t), "")
	r.Note("windows' p90 in us, Medium 200 ms and Low 400 ms later", "", p90s(a), "")
	return r
}
