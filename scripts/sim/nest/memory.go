package nest

import (
	"fmt"

	"lunar/scheduler/qtcp"
	"lunar/scripts/sim/experiment"
	"lunar/scripts/sim/kernel"
	"lunar/scripts/sim/net"
)

// blockAccess is what storage-class memory takes for 4 KiB by blocks.
const blockAccess = 33 * net.Microsecond

// runSCM reads 4 KiB of memory over the network, alone and beside three classes that read
// from an SSD at the same server.
func runSCM(env *experiment.Env) (r experiment.Result) {
	run := func(busy bool) *source {
		x := newSite(env, 2, net.QTCP)
		s := x.fabric.NewServer(1, byTag{NewSCM(&x.kernel, 16, blockAccess, 0), x.ssd(Flash{
			Chips: 64, PageBytes: 4096, Read: 18 * net.Microsecond, Inside: 256, Arbiter: true})}, 0)
		reads := func(tag Tag, gigabits, bytes float64, most int) *source {
			path := x.fabric.Connect(tag, x.transport, 0, s)
			return x.add(tag, gigabits, bytes, most, []*Path{path}, always(false), always(int64(bytes)))
		}
		urgent := reads(Urgent, 2, 4096, 0)
		for c := range tags {
			if busy {
				reads(tags[c], offered[c], 65536, 64)
			}
		}
		length := 100 * net.Millisecond
		if env.Reduced {
			length = 20 * net.Millisecond
		}
		x.run(5*net.Millisecond, length)
		return urgent
	}
	alone, beside := run(false), run(true)
	r.Wiring()
	r.Within("unloaded, us", "35-40", alone.mean(), 35, 40)
	r.Model() // the queues of switches decide
	r.AtMost("p99 beside three classes/unloaded", "35-40 us", beside.percentile(99)/alone.mean(), 1.15)
	return r
}

// latencies runs messages of 2 MB of three classes over a link of 20 Gb/s, a tenth of which
// is urgent traffic or none, and returns the p90 of each in us.
func latencies(env *experiment.Env, rule net.Rule, urgent bool) (us []float64) {
	const gigabits, load, bytes, share = 20, 0.3, 2e6, 0.1
	var k kernel.Kernel
	f := NewStar(&k, 5, gigabits, Queue{Mark: threshold})
	g := net.NewGroup(&k, gigabits, trip, true)
	var sources []*source
	for c := range qtcp.Classes {
		flow := net.NewFlow(&k, net.NewWindowed(rule, c, g), f.Path(int(c), 4), trip)
		r := kernel.NewRand(env.Seed, uint64(c))
		s := &source{kernel: &k, r: kernel.NewRand(env.Seed, 16+uint64(c)), gap: bytes * 8000 * float64(qtcp.Classes) / (gigabits * load)}
		s.ask = func(ended func(int64, int64)) {
			m := &net.Message{Bytes: 1 + int64(r.ExpFloat64()*bytes)}
			m.Done = func(now int64) { ended(m.Bytes, now-m.At) }
			flow.Send(m)
		}
		sources = append(sources, s)
	}
	for _, s := range sources {
		s.start(0)
	}
	if urgent {
		s := &source{kernel: &k, r: kernel.NewRand(env.Seed, 32), gap: 256 * 8000 / (gigabits * share)}
		s.ask = func(ended func(int64, int64)) {
			newProbe(&k, 256, true, f.Path(3, 4), f.Path(4, 3), func(l int64) { ended(256, l) }).send()
		}
		s.start(0)
	}
	length := 10 * net.Second
	if env.Reduced {
		length = net.Second / 2
	}
	k.Run(length)
	for _, s := range sources {
		us = append(us, s.percentile(90))
	}
	return us
}

func runUrgentLatency(env *experiment.Env) (r experiment.Result) {
	without, with := latencies(env, ruleOf(env), false), latencies(env, ruleOf(env), true)
	r.Model()
	for c, paper := range []string{"10 to 11 ms", "13 to 15.3 ms", ""} {
		r.AtMost(fmt.Sprintf("p90 of %s with urgent traffic/without", tags[c]), paper, with[c]/without[c], 1.2)
	}
	r.Claim("High < Medium < Low with urgent traffic, p90 in us", "order kept", "in order", three(with), with[0] < with[1] && with[1] < with[2],
		"at a load of 0.3 messages of different classes seldom meet")
	r.Note("without, p90 in us", "10, 13 ms", three(without), "")
	return r
}
