package net

import (
	"math/rand/v2"

	"lunar/scheduler/qtcp"
	"lunar/scripts/sim/experiment"
	"lunar/scripts/sim/kernel"
)

// route is a bottleneck between a server and three readers.
type route struct {
	rate  float64 // Gb/s
	trip  int64   // ps, without a queue
	mark  int     // packets in the queue from which on all are marked
	delay int64   // ps that queues may hold packets: what the configuration allows
}

// The bottleneck of scripts/bench/network.sh, and one behind a long way, whose queue may hold a
// third of what is under way.
var (
	near = route{0.2, 60 * Microsecond, 67, 3 * Millisecond}
	far  = route{0.01, 30 * Millisecond, 8, 5 * Millisecond}
)

// late is how much later than it should a look of the governor comes at most.
const late = 200 * Microsecond

// path is how the server learns of congestion, its kernel's congestion control, and who governs.
type path struct {
	name    string
	sense   sense
	control control
	by      governor
}

var paths = []path{
	{"delay, tgtd over cubic", byDelay, cubic, tgtd},
	{"delay, lunar_qtcp", byDelay, cubic, lunarQTCP},
	{"marks, tgtd over dctcp", byMarks, dctcp, tgtd},
	{"marks, lunar_qtcp", byMarks, dctcp, lunarQTCP},
	{"echoes, tgtd over dctcp", byEcho, dctcp, tgtd},
	{"echoes, tgtd over cubic", byEcho, cubic, tgtd},
	{"echoes, lunar_qtcp", byEcho, dctcp, lunarQTCP},
}

// rates are what three readers get, in Mb/s. equal: no class has a weight or a share.
func (w route) rates(seed uint64, p path, equal bool) []float64 {
	var k kernel.Kernel
	group := NewGroup(&k, w.rate, w.trip+w.delay, true)
	link := NewLink(&k, PerByte(w.rate), Propagation)
	if link.Room, link.Step = 1000, true; p.sense != byDelay {
		link.Mark = w.mark
	}
	flows := make([]*Flow, qtcp.Classes)
	for c := range qtcp.Classes {
		g := &governed{
			Flow: qtcp.NewFlow(firstWindow), class: c, group: group, sense: p.sense, by: p.by, equal: equal,
			late: late, delay: w.delay, stack: newStack(p.control), r: rand.New(rand.NewPCG(seed, uint64(c))),
		}
		group.Device.Join(c)
		group.flows = append(group.flows, g)
		flows[c] = NewFlow(&k, g, []*Link{NewLink(&k, PerByte(10), Propagation), link}, w.trip)
		flows[c].SendEndless(true)
	}
	const warm, end = 4 * Second, 24 * Second
	k.Run(warm)
	rates := make([]float64, len(flows))
	for i, f := range flows {
		rates[i] = -float64(f.Acked)
	}
	k.Run(end)
	for i, f := range flows {
		rates[i] = (rates[i] + float64(f.Acked)) * 8 * float64(Second) / float64(end-warm) / 1e6
	}
	return rates
}

func runServer(env *experiment.Env) (r experiment.Result) {
	for _, w := range []struct {
		name string
		route
	}{{"200 Mb/s", near}, {"10 Mb/s, 30 ms", far}} {
		for _, p := range paths {
			name := w.name + ", " + p.name
			rates := w.rates(env.Seed, p, !env.Decides(weighed))
			for c, share := range []float64{50, 100. / 3, 100. / 6} {
				if r.Model(); qtcp.Class(c) != qtcp.Medium { // which gets a third without classes, too
					r.Paper(weighed)
				}
				r.Near(name+", share in %: "+classes[c], "3:2:1", 100*rates[c]/sum(rates), share, 0.1)
			}
			r.Model()
			p.by = nobody
			r.AtLeast(name+", in all, of what nobody governs", "", sum(rates)/sum(w.rates(env.Seed, p, true)), 0.95)
		}
	}
	return r
}
