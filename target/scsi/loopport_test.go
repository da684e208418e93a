package scsi

import (
	"math"
	"testing"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/internal/buf"
	"lunar/internal/evloop"
)

// initiator sends commands of one nexus to a unit whose store has real lanes.
type initiator struct {
	nexus *Nexus
	loop  *evloop.Loop
	lane  backstore.Lane
}

// newInitiator has an event thread of its own.
func newInitiator(t *testing.T, lu *LogicalUnit) *initiator {
	t.Helper()
	workers := evloop.NewWorkers(4)
	loop, err := evloop.New(evloop.Config{Name: "test", CPU: -1, Node: -1, Buffers: 4 << 20, Workers: workers})
	if err != nil {
		t.Fatal(err)
	}
	go loop.Run()
	t.Cleanup(func() {
		workers.Close()
		loop.Stop()
	})
	lane, err := lu.Store().Lane(loop)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { backstoretest.On(loop, lane.Close) })
	n := &Nexus{LU: lu, Map: func() []uint64 { return []uint64{0} }}
	lu.Attach(n)
	n.takeAttention()
	return &initiator{n, loop, lane}
}

// send executes a command that brings out or expects in bytes. With immediate
// the data lie in the receive buffer when it begins.
func (i *initiator) send(cdb, out []byte, in uint32, immediate bool) *loopPort {
	p := &loopPort{loop: i.loop, out: out, done: make(chan struct{})}
	c := &p.c
	copy(c.CDB[:], cdb)
	c.CDBLength, c.Nexus, c.Lane, c.Port = 16, i.nexus, i.lane, p
	c.HasOut, c.HasIn, c.EDTL = len(out) > 0, len(out) == 0 && in > 0, max(uint32(len(out)), in)
	if immediate && c.HasOut {
		c.Immediate = out
	}
	i.loop.Post(evloop.Func(func() { i.nexus.LU.Execute(c) }))
	<-p.done
	return p
}

// loopPort is the port of one command on an event thread.
type loopPort struct {
	c    Command
	loop *evloop.Loop
	out  []byte
	in   []byte
	done chan struct{}
}

func (p *loopPort) Alloc(_ *Command, n int) *buf.Ref             { return p.loop.Pool().Get(n) }
func (*loopPort) Affords(*Command, int) bool                     { return true }
func (*loopPort) Reach(*Command, func(*Nexus) bool) (CSCD, bool) { return CSCD{}, false }
func (*loopPort) Background(*Command, func(*Command)) bool       { return false }
func (*loopPort) Charge(*Command, *buf.Ref)                      {}
func (*loopPort) Contain(*Command)                               {}
func (p *loopPort) Wake(_ *Command, t Task)                      { p.loop.Post(evloop.Func(t.Run)) }
func (*loopPort) Turn(*Command) int64                            { return math.MaxInt64 }
func (*loopPort) Within(*Command, int64, Task) bool              { return true }
func (p *loopPort) Again(_ *Command, t Task)                     { p.loop.Again(t) }
func (p *loopPort) Complete(*Command)                            { close(p.done) }

func (p *loopPort) ReceiveDataOut(c *Command, off uint32, dst []byte) {
	copy(dst, p.out[off:])
	c.DataOut(off, uint32(len(dst)))
}

func (p *loopPort) SendDataIn(_ *Command, _ uint32, ref *buf.Ref, data []byte, last bool) {
	p.in = append(p.in, data...)
	if ref != nil {
		ref.Release()
	}
	if last {
		close(p.done)
	}
}
