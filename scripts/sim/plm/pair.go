package plm

import (
	"lunar/scheduler/plm"
	"lunar/scripts/sim/experiment"
	"lunar/scripts/sim/kernel"
)

const ms = 1_000_000

// together is the decision which set of a pair may work. The stub lets each decide by
// itself.
const together experiment.Decision = "plm.Pair: one set works at a time"

// paired is a run of a pair of sets under reads and writes that come by chance.
type paired struct {
	config        plm.Config
	reads, writes float64 // per ms, of both
}

// pairOutcome is what it measured.
type pairOutcome struct {
	instants, both int64 // looked at; with both sets at work
	windows        int64 // that were left
	forced         int64
	late, all      int64 // reads of a set at work, of both
}

func (p *paired) run(env *experiment.Env) (o pairOutcome) {
	r := kernel.NewRand(env.Seed, 5)
	length := int64(60_000)
	if env.Reduced {
		length /= 3
	}
	pair := plm.NewPair(p.config, 0)
	alone := [2]*plm.Set{plm.NewSet(p.config, 0), plm.NewSet(p.config, 0)}
	set := func(i int) *plm.Set {
		if env.Decides(together) {
			return pair.Set(i)
		}
		return alone[i]
	}
	was := [2]bool{true, true}
	nextRead, nextWrite := int64(0), int64(0)
	for now := int64(0); now < length*ms; now = min(nextRead, nextWrite) {
		if now >= nextRead {
			nextRead = now + int64(r.ExpFloat64()*ms/p.reads)
			i := 0
			if env.Decides(together) {
				i, _ = pair.Reader()
			} else if !alone[0].Deterministic() {
				i = 1
			}
			o.all++
			if set(i).Deterministic() {
				set(i).Read()
			} else {
				o.late++
			}
		}
		if now >= nextWrite {
			nextWrite = now + int64(r.ExpFloat64()*ms/p.writes)
			for i := range was {
				if set(i).Deterministic() {
					set(i).Hold()
				}
			}
		}
		if env.Decides(together) {
			pair.Advance(now)
		} else {
			alone[0].Advance(now, false)
			alone[1].Advance(now, false)
		}
		o.look(set, &was)
	}
	o.forced = set(0).Forced() + set(1).Forced()
	return o
}

// look notes what the sets do at an instant; a set at work takes its held writes.
func (o *pairOutcome) look(set func(int) *plm.Set, was *[2]bool) {
	o.instants++
	working := 0
	for i := range was {
		dt := set(i).Deterministic()
		if !dt {
			working++
			set(i).Flushed(set(i).Held())
		}
		if was[i] && !dt {
			o.windows++
		}
		was[i] = dt
	}
	if working == 2 {
		o.both++
	}
}

// runPair judges a pair whose counts suffice, and one whose counts do not.
func runPair(env *experiment.Env) (r experiment.Result) {
	enough := plm.Config{Reads: 2000, Writes: 600, Window: 100 * ms, ShortND: 10 * ms, LongND: 40 * ms}.Margins()
	o := (&paired{enough, 10, 3}).run(env)
	r.Paper(together)
	r.AtMost("counts above the load: instants with both sets at work", "none", float64(o.both), 0)
	r.AtMost("counts above the load: reads of a set at work", "none", float64(o.late), 0)
	r.Model()
	r.AtMost("counts above the load: forced windows", "none", float64(o.forced), 0)
	r.AtLeast("counts above the load: windows", "", float64(o.windows), 100)
	scarce := enough
	scarce.Reads, scarce.Writes = 700, 150
	o = (&paired{scarce, 20, 3}).run(env)
	r.Require("counts below the load: both sets at work only if forced", "", "no more often than forced", experiment.Num(float64(o.both))+" instants, "+experiment.Num(float64(o.forced))+" forced", (o.both > 0) == (o.forced > 0))
	r.Note("counts below the load: reads of a set at work, %", "", experiment.Num(100*float64(o.late)/float64(o.all)), "")
	return r
}
