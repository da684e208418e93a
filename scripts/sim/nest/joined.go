package nest

import (
	"fmt"
	"time"

	"lunar/scheduler"
	"lunar/scripts/sim/experiment"
	"lunar/scripts/sim/kernel"
	"lunar/scripts/sim/net"
)

// runJoined is one server with all stages: network, gate, cache, device and the gathering
// of responses. Three hosts read 4 KiB; the third has a limit.
func runJoined(env *experiment.Env, r *experiment.Result) error {
	const limit, hot, blocks = 5_000, 4096, 2048
	x := newSite(env, 4, net.QTCP)
	s := x.fabric.NewServer(3, x.ssd(slc), net.Microsecond)
	var paths []*Path
	for c, tag := range tags {
		paths = append(paths, x.fabric.Connect(tag, x.transport, c, s))
	}
	rules := make([]scheduler.Rule, len(paths))
	rules[2].Limit = scheduler.Rate{IOPS: limit}
	if !env.Decides(gating) {
		rules = nil
	}
	if err := newGate(s, rules); err != nil {
		return err
	}
	var err error
	if s.cache, err = newCached(blocks); err != nil {
		return err
	}
	s.batch = newBatched(&x.kernel)
	zipf, random := kernel.NewDraw(kernel.ZipfWeights(hot, 0.9)), kernel.NewRand(env.Seed, 1<<34)
	var sources []*source
	for c, tag := range tags {
		o := &source{kernel: &x.kernel, r: kernel.NewRand(env.Seed, uint64(c)), gap: float64(50 * net.Microsecond), most: 32}
		o.ask = func(ended func(int64, int64)) {
			q := &Request{Tag: tag, Bytes: 4096, Block: uint64(zipf.Next(random))}
			q.Done = func(now int64) { ended(q.Bytes, now-q.At) }
			paths[c].Ask(q)
		}
		sources = append(sources, o)
	}
	x.sources = sources
	const settle, length = net.Second, net.Second
	x.run(settle, length)
	iops := make([]float64, len(sources))
	for i, o := range sources {
		iops[i] = float64(len(o.latencies)) / float64(length) * float64(net.Second)
	}
	r.Model()
	r.AtMost("I/Os per second of the limited host", "", iops[2], limit*1.01)
	r.AtLeast("I/Os per second of the others", "", min(iops[0], iops[1]), 2*limit)
	r.Within("hits of the cache", "", float64(s.cache.hits)/float64(s.cache.accesses), 0.5, 0.95)
	r.AtLeast("responses in a post", "", float64(s.batch.sent)/float64(s.batch.posts), 1)
	return nil
}

// runScale is thirty devices behind a fat tree, of which 24 hosts read.
func runScale(env *experiment.Env) (r experiment.Result) {
	const devices, ports, each = 30, 6, 4.0 // Gb/s of a host
	length := 20 * net.Millisecond
	if env.Reduced {
		length = 2 * net.Millisecond
	}
	var k kernel.Kernel
	f := NewFatTree(&k, ports, line, Queue{Mark: threshold})
	groups := map[bool]*net.Group{false: net.NewGroup(&k, line, trip, false), true: net.NewGroup(&k, line, trip, false)}
	transport := func(t Tag, toHost bool) net.Control { return net.NewWindowed(net.QTCP, classOf(t), groups[toHost]) }
	var servers []*Server
	for i := range devices {
		servers = append(servers, f.NewServer(i, NewSSD(&k, []Flash{slc, tlc}[i%2], kernel.NewRand(env.Seed, uint64(i))), net.Microsecond))
	}
	var sources []*source
	asked := 0
	for h := devices; h < f.hosts; h++ {
		tag := tags[h%len(tags)]
		var paths []*Path
		for _, s := range servers {
			paths = append(paths, f.Connect(tag, transport, h, s))
		}
		s := &source{kernel: &k, r: kernel.NewRand(env.Seed, 1<<20+uint64(h)), gap: 4096 * 8000 / each, most: 256}
		ask := requests(paths, tag, always(false), always(int64(4096)))
		s.ask = func(ended func(int64, int64)) {
			asked++
			ask(ended)
		}
		s.start(0)
		sources = append(sources, s)
	}
	began := time.Now()
	k.Run(length)
	took := time.Since(began).Minutes() * float64(net.Second) / float64(length)
	ended, outstanding := 0, 0
	for _, s := range sources {
		ended += len(s.latencies)
		outstanding += s.outstanding
	}
	r.Model()
	r.Require("requests: ended and outstanding are those that were asked for", "", fmt.Sprint(asked), fmt.Sprint(ended+outstanding), ended+outstanding == asked)
	if env.Reduced {
		r.Note("minutes for a simulated second", "runs", experiment.Num(took), fmt.Sprintf("%d events; the machine's time", k.Events()))
	} else {
		r.AtMost("minutes for a simulated second", "runs", took, 10)
	}
	return r
}
