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

	apart [qtcp.Classes]int64 // ps after which readers begin
	late  int64               // ps, if looks come later than usual
}

// The bottleneck of scripts/bench/network.sh, and one behind a long way, whose queue may hold a
// third of what is under way.
var (
	near = route{rate: 0.2, trip: 60 * Microsecond, mark: 67, delay: 3 * Millisecond}
	far  = route{rate: 0.01, trip: 30 * Millisecond, mark: 8, delay: 5 * Millisecond}
)

// late is how much later than it should a look of the governor comes at most, and an
// acknowledgement where readers do not begin together.
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
			late: max(late, w.late), delay: w.delay, stack: newStack(p.control), r: rand.New(rand.NewPCG(seed, uint64(c))),
		}
		group.Device.Join(c)
		group.flows = append(group.flows, g)
		flows[c] = NewFlow(&k, g, []*Link{NewLink(&k, PerByte(10), Propagation), link}, w.trip)
		if w.apart != [qtcp.Classes]int64{} {
			flows[c].Late = func() int64 { return g.r.Int64N(late) }
		}
		k.At(w.apart[c], kernel.Arrival, beginning{flows[c]}, 0)
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

// beginning is when a flow begins to send.
type beginning struct{ *Flow }

// Fire implements kernel.Actor.
func (b beginning) Fire(int64, int32) { b.SendEndless(true) }

func runServer(env *experiment.Env) (r experiment.Result) {
	inTurn := near
	inTurn.apart = [qtcp.Classes]int64{qtcp.High: Second, qtcp.Medium: 2 * Second}
	for _, w := range []struct {
		name string
		route
		paths []path
	}{{"200 Mb/s", near, paths}, {"10 Mb/s, 30 ms", far, paths}, {"200 Mb/s, low first", inTurn, paths[:2]}} {
		for _, p := range w.paths {
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
	for _, p := range []path{paths[0], paths[2], paths[4], paths[5]} {
		busy, nobodys := near, p
		busy.late, nobodys.by = 16*Millisecond, nobody
		r.Model()
		r.AtLeast("200 Mb/s, "+p.name+", looks up to four round trips late, in all, of what nobody governs", "",
			sum(busy.rates(env.Seed, p, false))/sum(busy.rates(env.Seed, nobodys, true)), 0.95)
	}
	return r
}
