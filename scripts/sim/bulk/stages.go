package bulk

import (
	"fmt"
	"slices"

	"lunar/internal/pipeline"
	"lunar/scripts/sim/experiment"
	"lunar/scripts/sim/kernel"
)

const (
	ms  = int64(1e6)
	sec = int64(1e9)
)

// flow is a line of the server's in virtual time, whose first queue never lacks blocks.
type flow struct {
	k       *kernel.Kernel
	line    *pipeline.Line
	service []int64 // ns of a block in each stage
	left    int     // blocks that have not begun
	out     int     // that have passed
	last    int64   // when the last one did
}

// turn has everything begin that can.
func (f *flow) turn() {
	for f.left > 0 && f.line.Offer(0, &pipeline.Block{}, f.k.Now()) {
		f.left--
	}
	for i := f.line.Stages() - 1; i >= 0; i-- {
		for b := f.line.Take(i, f.k.Now()); b != nil; b = f.line.Take(i, f.k.Now()) {
			f.k.After(f.service[i], kernel.Completion, func() { f.done(i, b) })
		}
	}
}

func (f *flow) done(i int, b *pipeline.Block) {
	if f.line.Done(i, b, f.k.Now()) {
		f.out, f.last = f.out+1, f.k.Now()
	}
	f.turn()
}

var times = []int64{2 * ms, 6 * ms, 8 * ms, 2 * ms} // of the experiment's stages

// staged is a line of these stages; without staging, one that has all steps in one.
func staged(env *experiment.Env, threads []int, blocks int) *flow {
	f := &flow{k: &kernel.Kernel{}, service: times, left: blocks}
	var stages []pipeline.StageConfig
	for i, kind := range []pipeline.Kind{pipeline.Events, pipeline.Parallel, pipeline.Parallel, pipeline.Hybrid} {
		stages = append(stages, pipeline.StageConfig{Kind: kind, Bound: 4, Threads: threads[i]})
	}
	if !env.Decides(staging) {
		stages, f.service = stages[:1], []int64{sum(times)}
	}
	f.line = pipeline.NewLine(stages...)
	return f
}

func sum(all []int64) (n int64) {
	for _, v := range all {
		n += v
	}
	return n
}

func runRate(env *experiment.Env, r *experiment.Result) error {
	f := staged(env, []int{1, 3, 4, 1}, 100)
	f.turn()
	f.k.Drain()
	r.Paper(staging)
	r.Require("ms for 100 blocks", "line rate", "216", experiment.Num(float64(f.last)/1e6), f.last == 216*ms)
	alone := staged(&experiment.Env{Stub: staging}, []int{1, 0, 0, 0}, 100)
	alone.turn()
	alone.k.Drain()
	r.Model()
	r.Require("ms with one thread for all steps", "", "1800", experiment.Num(float64(alone.last)/1e6), alone.last == 1800*ms)
	return nil
}

// cores of the experiment are for parallel stages: one of 8 is for those of events.
const cores = 7

func runAdapt(env *experiment.Env, r *experiment.Result) error {
	const settled, watched = 8, 30
	f := staged(env, []int{1, 1, 1, 1}, 1<<30)
	f.turn()
	log := experiment.NewLog(env.Log)
	var history [][]int
	var passed []int
	for s := range int64(settled + watched) {
		f.k.Run((s + 1) * sec)
		var now []int
		samples := f.line.Samples(f.k.Now())
		threads := pipeline.Adapt(samples, cores)
		for i := range f.line.Stages() {
			if env.Decides(adapting) {
				f.line.SetThreads(i, threads[i])
			}
			now = append(now, f.line.Threads(i))
			log.Line(f.k.Now(), "threads", int64(i), int64(now[i]))
		}
		history, passed = append(history, now), append(passed, f.out)
		f.turn()
	}
	final := history[settled-1]
	rate := float64(passed[settled+watched-1]-passed[settled-1]) / watched
	r.Paper(adapting)
	r.Require("threads after 8 s", "follow the load", "1 3 4 1", fmt.Sprint(final), slices.Equal(final, []int{1, 3, 4, 1}))
	r.AtLeast("blocks in a second, of 500 possible", "line rate", rate, 0.95*500)
	r.Model()
	changed := 0
	for _, h := range history[settled:] {
		if !slices.Equal(h, final) {
			changed++
		}
	}
	r.Require("changes in the next 30 s", "", "0", fmt.Sprint(changed), changed == 0)
	return log.Flush()
}
