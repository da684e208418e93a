package nest

import (
	"math/rand/v2"

	"lunar/scripts/sim/kernel"
	"lunar/scripts/sim/net"
)

// early is how many commands the server answers before the end of a pass, and how often in one
// (earlyFrom and earlySends of lunar/target/tcp).
const early, earlySends = 8, 3

// sending is the part of a pass's cost that is what it sends: over loopback a sendmsg of a header
// takes 3.3 us, a read of one 0.6 and each of two epoll_wait 0.5.
const sending = 2. / 3

// passes is a thread that works in passes, as the server's and the load generator's do: it
// takes all that is there, needs a time for the pass and one for each command, and gives all
// on. A part of the time of a pass is that of what it sends: the server sends the first of many
// commands before the others are executed. While the other end works, too, all takes longer:
// both use the same memory, and lines of the cache that the other one has.
type passes struct {
	kernel *kernel.Kernel
	r      *rand.Rand
	of     func(int) cost       // what a command of a kind costs
	give   func(commands []int) // where they go
	sends  int                  // at most, before the end of a pass
	other  *passes
	slow   float64 // how much longer it takes beside the other

	inbox, taken, part []int
	pass               float64 // ps, of this pass
	varies             float64 // of this pass
	sent               int     // in this pass
	busy               bool
	left               float64 // ps of the part, alone
	since              int64
	plans              int
	began, worked      int64 // when it began to work, and for how long it has
}

func (p *passes) take(commands []int) {
	p.inbox = append(p.inbox, commands...)
	if !p.busy {
		p.begin()
	}
}

// begin begins a pass, if there is something to do.
func (p *passes) begin() {
	if len(p.inbox) == 0 {
		return
	}
	p.taken, p.inbox, p.sent = p.inbox, nil, 0
	p.varies = 0.75 + p.r.Float64()/2 // 1 on the mean
	p.pass = 0
	for _, c := range p.taken {
		p.pass += p.of(c).pass / float64(len(p.taken)) * float64(net.Microsecond)
	}
	p.turn(true)
	p.next(p.pass * (1 - sending))
}

// next works on the next part of a pass, after what it begins with.
func (p *passes) next(work float64) {
	p.part = p.taken
	if p.sent < p.sends && len(p.taken) > early {
		p.part = p.taken[:early]
	}
	p.taken = p.taken[len(p.part):]
	p.sent++
	for _, c := range p.part {
		work += p.of(c).each * float64(net.Microsecond)
	}
	p.left, p.since = (work+p.pass*sending)*p.varies, p.kernel.Now()
	p.plan()
}

// pace is for how long something takes that takes 1 alone.
func (p *passes) pace() float64 {
	if p.other.busy {
		return p.slow
	}
	return 1
}

func (p *passes) plan() {
	p.plans++
	number := p.plans
	p.kernel.After(int64(p.left*p.pace()), kernel.Completion, func() {
		if number == p.plans {
			p.done()
		}
	})
}

// turn begins or ends to work, which makes the other end slower or quicker.
func (p *passes) turn(busy bool) {
	if o := p.other; o.busy {
		o.left -= float64(p.kernel.Now()-o.since) / o.pace()
		o.left, o.since, p.busy = max(o.left, 0), p.kernel.Now(), busy
		o.plan()
	}
	if now := p.kernel.Now(); busy {
		p.began = now
	} else {
		p.worked += now - p.began
	}
	p.busy = busy
}

func (p *passes) done() {
	given, last := p.part, len(p.taken) == 0
	if last {
		p.turn(false)
	}
	p.give(given)
	switch {
	case !last:
		p.next(0)
	case !p.busy:
		p.begin()
	}
}

// cost is what a pass and each command in it cost, in us.
type cost struct{ pass, each float64 }

// end is what one end needs for reads and for writes.
type end struct{ read, write cost }

// costs are those of both ends, and how much longer all takes while both work.
type costs struct {
	server, client end
	slow           float64
}

// looped is what a closed loop came to: the median latency in us, and the part of the time in
// which the client had something to do.
type looped struct{ latency, busy float64 }

// closed is a client that keeps so many commands outstanding, of which reads are a share. In
// turns it looks at answers only when all commands have one.
func (c *costs) closed(seed uint64, depth int, reads float64, inTurns bool) looped {
	const commands = 40_000
	var k kernel.Kernel
	r := kernel.NewRand(seed, 0)
	writes := make([]bool, depth)
	began := make([]int64, depth)
	all := &source{kernel: &k}
	newEnd := func(n uint64, e end) *passes {
		return &passes{kernel: &k, r: kernel.NewRand(seed, n), slow: c.slow, of: func(i int) cost {
			if writes[i] {
				return e.write
			}
			return e.read
		}}
	}
	server, client := newEnd(1, c.server), newEnd(2, c.client)
	server.other, client.other, server.sends = client, server, earlySends
	var answered []int
	server.give = func(done []int) {
		answered = append(answered, done...)
		if !inTurns || len(answered) == depth {
			done, answered = answered, nil
			client.take(done)
		}
	}
	client.give = func(done []int) {
		for _, i := range done {
			all.latencies = append(all.latencies, k.Now()-began[i])
			began[i], writes[i] = k.Now(), r.Float64() >= reads
		}
		server.take(done)
	}
	first := make([]int, depth)
	for i := range first {
		first[i], writes[i] = i, r.Float64() >= reads
	}
	server.take(first)
	for len(all.latencies) < commands {
		k.Run(k.Now() + net.Millisecond)
	}
	all.latencies = all.latencies[commands/10:]
	return looped{all.percentile(50), float64(client.worked) / float64(k.Now())}
}
