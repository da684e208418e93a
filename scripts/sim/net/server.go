package net

import (
	"math/rand/v2"

	"lunar/scheduler/qtcp"
	"lunar/scripts/sim/experiment"
	"lunar/scripts/sim/kernel"
)

// The bottleneck of scripts/bench/network.sh.
const (
	serverRate  = 0.2 // Gb/s
	serverTrip  = 60 * Microsecond
	serverDelay = 3 * Millisecond // what the configuration allows
	serverMark  = 67              // packets, which take 4 ms
	serverLate  = 200 * Microsecond
)

// serverRates are what three readers get, in Mb/s.
func serverRates(env *experiment.Env, s sense) []float64 {
	var k kernel.Kernel
	group := NewGroup(&k, serverRate, serverTrip+serverDelay, true)
	link := NewLink(&k, PerByte(serverRate), Propagation)
	if link.Room, link.Step = 1000, true; s != byDelay {
		link.Mark = serverMark
	}
	flows := make([]*Flow, qtcp.Classes)
	for c := range qtcp.Classes {
		g := &governed{
			Flow: qtcp.NewFlow(firstWindow), class: c, group: group, sense: s, equal: !env.Decides(weighed),
			late: serverLate, delay: serverDelay, r: rand.New(rand.NewPCG(env.Seed, uint64(c))),
		}
		group.Device.Join(c)
		group.flows = append(group.flows, g)
		flows[c] = NewFlow(&k, g, []*Link{NewLink(&k, PerByte(10), Propagation), link}, serverTrip)
		flows[c].SendEndless(true)
	}
	const warm, end = 2 * Second, 14 * Second
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
	for s, name := range []string{byDelay: "by delay", byMarks: "by marks", byEcho: "by echoes"} {
		rates := serverRates(env, sense(s))
		for c, share := range []float64{50, 100. / 3, 100. / 6} {
			if r.Model(); qtcp.Class(c) != qtcp.Medium { // which gets a third without classes, too
				r.Paper(weighed)
			}
			r.Near(name+", share in %: "+classes[c], "3:2:1", 100*rates[c]/sum(rates), share, 0.1)
		}
		r.Model()
		r.AtLeast(name+", in all, Mb/s", "", sum(rates), 0.95*1000*serverRate)
	}
	return r
}
