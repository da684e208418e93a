package nest

import (
	"fmt"

	"lunar/scripts/sim/experiment"
	"lunar/scripts/sim/kernel"
	"lunar/scripts/sim/net"
)

// sizes are what requests of the classes have, in blocks of 4 KiB.
var sizes = [...]struct{ least, most int64 }{{17, 98}, {13, 75}, {5, 30}}

// bottlenecked is one host and ten servers with an SSD each, all three classes at the host,
// of whose commands reads are a share. It returns what the classes write and read, in Gb/s.
func bottlenecked(env *experiment.Env, reads float64) (got [2][]float64) {
	const servers, most = 10, 100
	x := newSite(env, servers+1, ruleOf(env))
	var fast []*Server
	for i := range servers {
		fast = append(fast, x.fabric.NewServer(i+1, x.ssd(Flash{Chips: 20, PageBytes: 4096, Read: 20 * net.Microsecond, Write: 20 * net.Microsecond, Inside: 256}), 0))
	}
	var sources [2][]*source
	for c, size := range sizes {
		var paths []*Path
		for _, s := range fast {
			paths = append(paths, x.fabric.Connect(tags[c], x.transport, 0, s))
		}
		for direction, share := range []float64{1 - reads, reads} {
			if share == 0 {
				continue
			}
			r := kernel.NewRand(env.Seed, 1<<33+uint64(c))
			bytes := func() int64 { return 4096 * (size.least + r.Int64N(size.most-size.least+1)) }
			mean := 2048 * float64(size.least+size.most)
			offered := mean * 8 * 45e3 / 1e9 * 2 * max(share, 0.5) // so many commands a second and class
			sources[direction] = append(sources[direction], x.add(tags[c], offered, mean, most, paths, always(direction == 0), bytes))
		}
	}
	settle, length := 20*net.Millisecond, 100*net.Millisecond
	if env.Reduced {
		settle, length = 10*net.Millisecond, 20*net.Millisecond
	}
	x.run(settle, length)
	for direction := range got {
		got[direction], _ = rates(sources[direction])
	}
	return got
}

func runThroughput(env *experiment.Env) (r experiment.Result) {
	for _, load := range []struct {
		name  string
		reads float64
	}{{"writes", 0}, {"49.1 % reads", 0.491}, {"reads", 1}} {
		for direction, got := range bottlenecked(env, load.reads) {
			if len(got) == 0 {
				continue
			}
			what := load.name + []string{", written: ", ", read: "}[direction]
			sum := got[0] + got[1] + got[2]
			for c, want := range []float64{3. / 6, 2. / 6, 1. / 6} {
				if r.Paper(quality); tags[c] == Medium { // about the same without quality
					r.Model()
				}
				share := got[c] / sum
				near := share >= want*0.92 && share <= want*1.08
				r.Claim(what+"share of "+tags[c].String(), []string{"48/96", "31/96", "17/96"}[c], experiment.Num(want)+" ±8 %", experiment.Num(share), near,
					"thirty connections have windows of some ten packets, and Low's of few more than one")
			}
			r.Model()
			wire := sum * net.MTU / net.Payload
			r.Claim(what+"in all, Gb/s on the wire", "96", "≥95", experiment.Num(wire), wire >= 95, "windows that are cut to one packet leave the link idle at times")
		}
	}
	return r
}

// runServers has three servers whose devices are slower than the network.
func runServers(env *experiment.Env) (r experiment.Result) {
	x := newSite(env, 6, net.DCTCP)
	var sources []*source
	var servers []*Server
	for i := range 3 {
		servers = append(servers, x.fabric.NewServer(3+i, x.ssd(slc), 0))
	}
	for c, tag := range tags {
		var paths []*Path
		for _, s := range servers {
			paths = append(paths, x.fabric.Connect(tag, x.transport, c, s))
		}
		sources = append(sources, x.add(tag, 40, 65536, 400, paths, always(false), always(int64(65536))))
	}
	x.run(20*net.Millisecond, 100*net.Millisecond)
	got, sum := rates(sources)
	r.Model() // the arbiter is the device's
	r.Require("High > Medium > Low, Gb/s", "by storage", "in order", three(got), got[0] > got[1] && got[1] > got[2])
	r.Note("in all, Gb/s", "", experiment.Num(sum), fmt.Sprintf("%d devices of 13.1 Gb/s", len(servers)))
	return r
}
