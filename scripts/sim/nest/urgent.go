package nest

import (
	"fmt"

	"lunar/scheduler/qtcp"
	"lunar/scripts/sim/experiment"
	"lunar/scripts/sim/kernel"
	"lunar/scripts/sim/net"
)

// Persistent memory that is reached over the network: an access takes fixed time.
const (
	memoryAccess = 900 * net.Nanosecond
	trip         = 25 * net.Microsecond
	threshold    = 140 // K
	line         = 100 // Gb/s
)

// offered is what High, Medium and Low offer, in Gb/s.
var offered = [qtcp.Classes]float64{90, 60, 30}

// probe is an urgent access: one packet there, one back, past what governs others.
type probe struct {
	kernel *kernel.Kernel
	there  *net.Packet
	back   *net.Packet
	began  int64
	ended  func(latency int64)
}

// newProbe returns an access of bytes that are written, over the links to a memory and back.
func newProbe(k *kernel.Kernel, bytes int, priority bool, there, back []*net.Link, ended func(int64)) *probe {
	p := &probe{kernel: k, ended: ended}
	p.there = &net.Packet{Bytes: bytes, Urgent: priority, Owner: p, Path: there}
	p.back = &net.Packet{Bytes: 64, Urgent: priority, Owner: p, Path: back}
	return p
}

func (p *probe) send() {
	p.began = p.kernel.Now()
	p.there.Send()
}

// Arrived implements net.Owner.
func (p *probe) Arrived(now int64, what *net.Packet) {
	if what == p.back {
		p.ended(now - p.began)
		return
	}
	p.kernel.After(memoryAccess, kernel.Completion, p.back.Send)
}

// Acknowledged implements net.Owner: nothing is acknowledged.
func (p *probe) Acknowledged(int64, *net.Packet) {}

// Lost implements net.Owner: it is sent again.
func (p *probe) Lost(int64, *net.Packet) { p.there.Send() }

// mixture is a target with memory and storage behind one link: three hosts write to the
// storage, others to the memory.
type mixture struct {
	kernel  kernel.Kernel
	fabric  *Fabric
	group   *net.Group
	storage []*net.Flow
	urgent  []*source
}

// mixed is what a mixture is like.
type mixed struct {
	rule     net.Rule
	share    float64 // of the link, that is urgent
	hosts    int     // that send it
	priority bool
	bytes    int // of an urgent packet
}

func newMixture(env *experiment.Env, m mixed) *mixture {
	x := &mixture{}
	x.fabric = NewStar(&x.kernel, int(qtcp.Classes)+m.hosts+1, line, Queue{Mark: threshold, Room: 2000, Reserve: 100})
	to := x.fabric.hosts - 1
	x.group = net.NewGroup(&x.kernel, line, trip, true)
	for c, gigabits := range offered {
		f := net.NewFlow(&x.kernel, net.NewWindowed(m.rule, qtcp.Class(c), x.group), x.fabric.Path(c, to), trip-1540*net.Nanosecond)
		f.Pace = int64(net.MTU * 8000 / gigabits)
		f.SendEndless(true)
		x.storage = append(x.storage, f)
	}
	for i := range m.hosts {
		from := int(qtcp.Classes) + i
		if !x.fabric.Admit(x.fabric.Path(from, to), m.share*line/float64(m.hosts)) {
			continue
		}
		s := &source{kernel: &x.kernel, r: kernel.NewRand(env.Seed, uint64(i)), gap: float64(m.bytes) * 8000 * float64(m.hosts) / (m.share * line)}
		s.ask = func(ended func(int64, int64)) {
			newProbe(&x.kernel, m.bytes, m.priority, x.fabric.Path(from, to), x.fabric.Path(to, from),
				func(latency int64) { ended(int64(m.bytes), latency) }).send()
		}
		x.urgent = append(x.urgent, s)
	}
	return x
}

// outcome is what a mixture did.
type outcome struct {
	p50, p90, p99 float64   // us, of urgent accesses
	storage       []float64 // Gb/s
	urgent        float64   // Gb/s
}

func (o *outcome) sum() (s float64) {
	for _, x := range o.storage {
		s += x
	}
	return s
}

func (x *mixture) run(env *experiment.Env) (o outcome) {
	settle, length := 20*net.Millisecond, 100*net.Millisecond
	if env.Reduced {
		settle, length = 5*net.Millisecond, 5*net.Millisecond
	}
	for _, s := range x.urgent {
		s.start(settle)
	}
	x.kernel.Run(settle)
	before := make([]int64, len(x.storage))
	for i, f := range x.storage {
		before[i] = f.Acked
	}
	x.kernel.Run(settle + length)
	for i, f := range x.storage {
		o.storage = append(o.storage, float64(f.Acked-before[i])*8000/float64(length))
	}
	all := &source{kernel: &x.kernel}
	for _, s := range x.urgent {
		all.latencies = append(all.latencies, s.latencies...)
		o.urgent += s.rate()
	}
	o.p50, o.p90, o.p99 = all.percentile(50), all.percentile(90), all.percentile(99)
	return o
}

// quality is the decision that shares of storage rest on; the stub is DCTCP.
const quality experiment.Decision = "qtcp.Flow.Update: the window by quality"

func ruleOf(env *experiment.Env) net.Rule {
	if env.Decides(quality) {
		return net.QTCP
	}
	return net.DCTCP
}

func runUrgent(env *experiment.Env) (r experiment.Result) {
	rule := ruleOf(env)
	alone := newMixture(env, mixed{rule: rule, hosts: 1, share: 1e-9, bytes: 128}).run(env)
	loads := []mixed{
		{share: 0.10, hosts: 1, bytes: 128}, {share: 0.10, hosts: 12, bytes: 128}, {share: 0.20, hosts: 1, bytes: 128},
		{share: 0.10, hosts: 1, bytes: 256}, {share: 0.12, hosts: 1, bytes: 128}, {share: 0.15, hosts: 1, bytes: 128},
	}
	if env.Reduced {
		loads = loads[:3]
	}
	for _, m := range loads {
		m.rule = rule
		what := fmt.Sprintf("%g %% of %d bytes", 100*m.share, m.bytes)
		if m.hosts > 1 {
			what += fmt.Sprintf(" from %d hosts", m.hosts)
		}
		without := newMixture(env, m).run(env)
		m.priority = true
		with := newMixture(env, m).run(env)
		r.Model() // the queues of switches decide
		r.AtMost(what+": with priority, p99 in us", "3-4", with.p99, 4.5)
		r.Within(what+": p99/p50", "p50 = p90 = p99", with.p99/with.p50, 1, 1.15)
		r.AtLeast(what+": below without priority in %", "82-83", 100*(1-with.p50/without.p50), 75)
		r.Note(what+": without priority, p50 in us", "17-23", experiment.Num(without.p50), "")
		for i, want := range []float64{1.0 / 2, 1.0 / 3, 1.0 / 6} {
			if r.Paper(quality); i == int(qtcp.Medium) { // about the same without quality
				r.Model()
			}
			r.Near(what+": share of "+(High+Tag(i)).String(), "3:2:1", with.storage[i]/with.sum(), want, 0.08)
		}
		r.Note(what+": in all, Gb/s", map[int]string{12: "87"}[m.hosts], experiment.Num(with.sum()+with.urgent),
			fmt.Sprintf("storage has %.1f, alone %.1f", with.sum(), alone.sum()))
	}
	return r
}

func runMemory(*experiment.Env) (r experiment.Result) {
	r.Wiring()
	r.Near("local access, us", "0.9", float64(memoryAccess)/float64(net.Microsecond), 0.9, 0.01)
	r.Model()
	for _, bytes := range []int{128, 256} {
		var k kernel.Kernel
		f := NewStar(&k, 2, line, Queue{})
		took := 0.0
		newProbe(&k, bytes, true, f.Path(0, 1), f.Path(1, 0), func(latency int64) { took = float64(latency) / float64(net.Microsecond) }).send()
		k.Drain()
		r.Within(fmt.Sprintf("%d bytes over the network, us", bytes), "3-4", took, 3, 4)
	}
	return r
}
