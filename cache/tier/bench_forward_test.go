package tier

import (
	"fmt"
	"testing"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/internal/evloop"
)

// ping submits reads of n bytes at off, one after the other, from the thread of
// its lane.
type ping struct {
	lane backstore.Lane
	op   backstore.Op
	left int
	err  error
	over chan struct{}
	next evloop.Func
	loop *evloop.Loop
}

func newPing(c *backstoretest.Client, off int64, n int) *ping {
	p := &ping{lane: c.Lane, loop: c.Loop, over: make(chan struct{}, 1)}
	p.op = backstore.Op{Kind: backstore.Read, Off: off, Data: backstoretest.Buffer(n)}
	p.op.Done = func(*backstore.Op) { p.ended() }
	p.next = p.step
	return p
}

// step runs on the loop's thread.
func (p *ping) step() {
	for ; p.left > 0; p.left-- {
		if !p.lane.Submit(&p.op) {
			return
		}
		if p.op.Err != nil {
			p.err = p.op.Err
		}
	}
	p.over <- struct{}{}
}

func (p *ping) ended() {
	if p.op.Err != nil {
		p.err = p.op.Err
	}
	p.left--
	p.step()
}

// run does count of them.
func (p *ping) run(t testing.TB, count int) {
	p.left = count
	p.loop.Post(p.next)
	if <-p.over; p.err != nil {
		t.Fatal(p.err)
	}
}

func TestForwardAllocatesNothing(t *testing.T) {
	f := newForwarders(t, twoNodes, newRAM(t), 2, 4<<10)
	c, closing := f.client(t, 0)
	defer closing()
	p := newPing(c, f.remoteBlock(), 64<<10)
	p.run(t, 2*sampleEvery)
	if n := testing.AllocsPerRun(10, func() { p.run(t, 2*sampleEvery) }); n >= 1 {
		t.Errorf("%v allocations in %d forwards, expected none", n, 2*sampleEvery)
	}
	if nodes, _ := f.cache.Forwarding(); nodes[0].Forwarded < 20*sampleEvery {
		t.Errorf("%d requests were forwarded, expected all", nodes[0].Forwarded)
	}
}

// BenchmarkForward is a hit that a thread of another node serves, there and back
// between two pinned threads, beside the same hit served where it arrives.
func BenchmarkForward(b *testing.B) {
	for _, n := range []int{4 << 10, 64 << 10, 256 << 10} {
		for _, threshold := range []int64{4 << 10, -1} {
			name := "forwarded"
			if threshold < 0 {
				name = "kept"
			}
			b.Run(fmt.Sprintf("%dKiB/%s", n>>10, name), func(b *testing.B) {
				s := setup{nodes: 2, block: 256 << 10, blocks: 8, parts: 2}
				store, err := backstore.NewRAM(benchVolume, 0)
				if err != nil {
					b.Fatal(err)
				}
				f := newForwarders(b, s, store, 2, threshold)
				for _, l := range f.loops {
					backstoretest.On(l, func() { l.SetBusyPoll(1e6) })
				}
				c, closing := f.client(b, 0)
				p := newPing(c, f.remoteBlock(), n)
				p.run(b, sampleEvery)
				b.SetBytes(int64(n))
				b.ReportAllocs()
				b.ResetTimer()
				p.run(b, b.N)
				b.StopTimer()
				closing()
			})
		}
	}
}

// BenchmarkRoute is what Algorithm 1 costs a request, and what is left of it on
// one node.
func BenchmarkRoute(b *testing.B) {
	for _, nodes := range []int{1, 2, 4} {
		for _, n := range []int{4 << 10, 256 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("nodes=%d/%dKiB", nodes, n>>10), func(b *testing.B) {
				s := setup{nodes: nodes, block: 256 << 10, blocks: 8, parts: 2}
				f := newForwarders(b, s, newRAM(b), 1, -1)
				c, closing := f.client(b, 0)
				defer closing()
				l, off := c.Lane.(*lane), int64(0)
				b.ReportAllocs()
				backstoretest.On(c.Loop, func() {
					for b.Loop() {
						r := l.forwarding.route(off, n)
						r.here()
						off = (off + 12<<10) & (1<<30 - 1)
					}
				})
			})
		}
	}
}
