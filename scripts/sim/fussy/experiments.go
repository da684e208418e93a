// Package fussy simulates FussyCache, which lets in only what is popular, against
// LRU (end-to-end thesis, chapter 2). Partition and policy are those of the
// server; what an access takes is a model.
package fussy

import (
	"fmt"

	"lunar/cache"
	"lunar/scripts/sim/experiment"
)

// Experiments lists the rows of the evaluation (algorithms B5): Zipf 0.9 over
// 20,000 blocks instead of the paper's traces, and blocks that are touched once.
func Experiments() []experiment.Experiment {
	return []experiment.Experiment{
		{
			ID: "fussy-e", Setup: "FC-E: Optane (15 us), cache of 10 % of the blocks, 0 to 50 % one-touch",
			Paper: "10-25 % faster than LRU", Check: "at least 20 % faster", Run: experiment.Try(runOptane),
		}, {
			ID: "fussy-l", Setup: "FC-L: flash (70 us), cache of 10 % of the blocks, 0 to 50 % one-touch",
			Paper: "7-17 % faster than LRU", Check: "faster, by less than with Optane", Run: experiment.Try(runFlash),
		}, {
			ID: "fussy-h", Setup: "FC-h: hit rate with a cache of 2.5 to 10 % of the blocks; a trace that suits LRU only",
			Paper: "best up to 5 %, LRU ahead from 7.5 % on", Check: "LRU mode after at most hrCount ticks", Run: experiment.Try(runHitRates),
		},
	}
}

// oneTouch are the shares of accesses to blocks that are never touched again.
var oneTouch = []float64{0, 0.25, 0.5}

// eachShare compares both policies at every share.
func eachShare(env *experiment.Env, do func(what string, c compared)) error {
	accesses := 300_000
	if env.Reduced {
		accesses /= 2
	}
	for _, once := range oneTouch {
		c, err := compare(env.Seed, 2000, accesses, once)
		if err != nil {
			return err
		}
		do(fmt.Sprintf("%.0f %% one-touch: hits %.2f -> %.2f, gain in %%", once*100, c.lru.hitRatio(), c.fussy.hitRatio()), c)
	}
	return nil
}

func runOptane(env *experiment.Env, result *experiment.Result) error {
	return eachShare(env, func(what string, c compared) { result.AtLeast(what, "10-25", c.gain(optane), 20) })
}

func runFlash(env *experiment.Env, result *experiment.Result) error {
	return eachShare(env, func(what string, c compared) { result.Within(what, "7-17", c.gain(flash), 0.1, c.gain(optane)) })
}

func runHitRates(env *experiment.Env, result *experiment.Result) error {
	for _, blocks := range []int{500, 1000, 1500, 2000} {
		c, err := compare(env.Seed, blocks, 60_000, 0.25)
		if err != nil {
			return err
		}
		what := fmt.Sprintf("%.1f %% of the blocks: LRU %.3f, fussy/LRU", float64(blocks)/200, c.lru.hitRatio())
		result.Note(what, "best up to 5 %", experiment.Num(c.fussy.hitRatio()/c.lru.hitRatio()), "")
	}
	ticks, err := adversary()
	if err == nil {
		result.Within("ticks of an adversary until LRU", "", float64(ticks), 1, hrCount)
	}
	return err
}

const (
	hrCount  = 5
	interval = 500 // accesses between ticks
)

// adversary warms FussyCache with popular blocks, then leaves them a few more in
// each interval, and counts the ticks until it has become LRU.
func adversary() (ticks int, err error) {
	const blocks, popular, enough = 1000, 100, 100
	f, err := cache.NewFussy(cache.FussyParams{FreqThreshold: 3, AccessThreshold: interval, Metadata: blocks / 2, HRCount: hrCount})
	if err != nil {
		return 0, err
	}
	c, err := newBlockCache(blocks, f)
	if err != nil {
		return 0, err
	}
	for i := range 20 * interval {
		c.access(uint64(i % popular))
	}
	if f.LRU() {
		return 0, fmt.Errorf("fussy cache is LRU although its hit rate rises")
	}
	fresh := uint64(1) << 32
	for ; !f.LRU() && ticks < enough; ticks++ {
		for i := range interval {
			n := uint64(i % popular)
			if i < (ticks+1)*interval/10 {
				fresh++
				n = fresh
			}
			c.access(n)
		}
	}
	return ticks, nil
}
