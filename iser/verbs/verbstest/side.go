// Package verbstest holds the tests that every implementation of iser/verbs
// must pass: the fake, and the libraries on a real device.
package verbstest

import (
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lunar/iser/verbs"
)

// patience is how long something may take before the test fails.
const patience = 20 * time.Second

const (
	memory     = 256 << 10
	everything = verbs.AccessLocalWrite | verbs.AccessRemoteRead | verbs.AccessRemoteWrite
)

var limits = verbs.QPLimits{SendWR: 128, RecvWR: 64, SendSGE: 16, Inline: 208}

// side is one end of a connection with what a test needs of it.
type side struct {
	t      *testing.T
	events verbs.EventChannel
	device verbs.Device
	pd     verbs.PD
	ch     verbs.CompChannel
	cq     verbs.CQ
	mr     verbs.MR
	mem    []byte
	id     verbs.ID
	qp     verbs.QP
	done   []verbs.WC // polled and not asked for yet
}

func (s *side) ok(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// open makes everything on a device but the connection.
func (s *side) open(d verbs.Device) {
	s.t.Helper()
	var err error
	s.device = d
	s.pd, err = d.AllocPD()
	s.ok(err)
	s.ch, err = d.OpenCompletions()
	s.ok(err)
	s.cq, err = d.CreateCQ(256, s.ch, 0)
	s.ok(err)
	s.mem, err = unix.Mmap(-1, 0, memory, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	s.ok(err)
	s.mr, err = s.pd.Register(s.mem, everything)
	s.ok(err)
}

func (s *side) close() {
	s.t.Helper()
	if s.qp != nil {
		s.ok(s.qp.Destroy())
	}
	if s.id != nil {
		s.ok(s.id.Destroy())
	}
	if s.device != nil {
		s.ok(s.mr.Deregister())
		_, err := s.ch.Drain()
		s.ok(err)
		s.ok(s.cq.Destroy())
		s.ok(s.ch.Destroy())
		s.ok(s.pd.Dealloc())
		s.ok(unix.Munmap(s.mem))
	}
	s.ok(s.events.Close())
}

// wait sleeps until a descriptor is readable; false if it is not in time.
func wait(t *testing.T, fd int) bool {
	t.Helper()
	until := time.Now().Add(patience)
	for left := patience; left > 0; left = time.Until(until) {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(left.Milliseconds()))
		if n > 0 {
			return true
		}
		if err != nil && err != unix.EINTR {
			t.Fatal(err)
		}
	}
	return false
}

// next is the next event, of the expected type.
func (s *side) next(expected verbs.EventType) (e verbs.Event) {
	s.t.Helper()
	for {
		there, err := s.events.Next(&e)
		s.ok(err)
		switch {
		case !there:
			if !wait(s.t, s.events.FD()) {
				s.t.Fatalf("found no event, expected %v", expected)
			}
		case e.Type == verbs.EventTimewaitExit && expected != e.Type:
		case e.Type != expected:
			s.t.Fatalf("found event %v with status %d, expected %v", e.Type, e.Status, expected)
		default:
			return e
		}
	}
}

// any is the next completion.
func (s *side) any() verbs.WC {
	s.t.Helper()
	for len(s.done) == 0 {
		if s.poll() {
			continue
		}
		s.ok(s.cq.Arm())
		if s.poll() {
			continue
		}
		if !wait(s.t, s.ch.FD()) {
			s.t.Fatal("found no completion")
		}
		_, err := s.ch.Drain()
		s.ok(err)
	}
	wc := s.done[0]
	s.done = s.done[1:]
	return wc
}

// completed is the next completion, of the expected id and status.
func (s *side) completed(id uint64, expected verbs.Status) verbs.WC {
	s.t.Helper()
	wc := s.any()
	if wc.ID != id || wc.Status != expected || wc.QP != s.qp.Number() {
		s.t.Fatalf("found completion %d (%v) of QP %d, expected %d (%v) of QP %d",
			wc.ID, wc.Status, wc.QP, id, expected, s.qp.Number())
	}
	return wc
}

func (s *side) poll() bool {
	s.t.Helper()
	var out [8]verbs.WC
	n, err := s.cq.Poll(out[:])
	s.ok(err)
	s.done = append(s.done, out[:n]...)
	return n > 0
}

func (s *side) sge(offset, n int) verbs.SGE {
	return verbs.SGE{Addr: verbs.Addr(s.mem) + uint64(offset), Len: uint32(n), LKey: s.mr.LKey()}
}

func (s *side) receive(id uint64, offset, n int) {
	s.t.Helper()
	_, err := s.qp.PostRecv([]uint64{id}, []verbs.SGE{s.sge(offset, n)})
	s.ok(err)
}

func (s *side) post(wr verbs.WR, sges ...verbs.SGE) {
	s.t.Helper()
	wr.NSGE = uint16(len(sges))
	_, err := s.qp.PostSend([]verbs.WR{wr}, sges)
	s.ok(err)
}

// to is an entry that moves data to or from the memory of this side.
func (s *side) to(op verbs.Op, id uint64, offset int, flags verbs.Flags) verbs.WR {
	return verbs.WR{ID: id, Op: op, RAddr: verbs.Addr(s.mem) + uint64(offset), RKey: s.mr.RKey(), Flags: flags}
}

// network is where the tests run.
type network struct {
	target, initiator verbs.Provider
	addr              netip.Addr // of the target's device
}

// sides opens both sides and a listener; what they have is destroyed at the end.
func (n network) sides(t *testing.T) (target, initiator *side, listener verbs.ID) {
	t.Helper()
	target, initiator = &side{t: t}, &side{t: t}
	var err error
	target.events, err = n.target.OpenEvents()
	target.ok(err)
	initiator.events, err = n.initiator.OpenEvents()
	initiator.ok(err)
	listener, err = target.events.Listen(netip.AddrPortFrom(n.addr, 0), 8)
	target.ok(err)
	t.Cleanup(func() {
		initiator.close()
		target.ok(listener.Destroy())
		target.close()
	})
	return target, initiator, listener
}

// request takes a connection as far as the target's EventConnectRequest.
func (n network) request(target, initiator *side, addr netip.AddrPort, p verbs.ConnParam) verbs.Event {
	initiator.t.Helper()
	var err error
	initiator.id, err = initiator.events.Resolve(addr, patience)
	initiator.ok(err)
	initiator.open(initiator.id.Device())
	initiator.qp, err = initiator.id.CreateQP(initiator.pd, initiator.cq, limits)
	initiator.ok(err)
	initiator.ok(initiator.id.Connect(p))
	e := target.next(verbs.EventConnectRequest)
	target.id = e.ID
	return e
}

// agree gives the target its QP and accepts.
func (target *side) agree(p verbs.ConnParam) {
	target.t.Helper()
	var err error
	target.open(target.id.Device())
	target.qp, err = target.id.CreateQP(target.pd, target.cq, limits)
	target.ok(err)
	target.ok(target.id.Accept(p))
}

// connected is a pair with a connection.
func (n network) connected(t *testing.T) (target, initiator *side) {
	t.Helper()
	target, initiator, listener := n.sides(t)
	p := verbs.ConnParam{InitiatorDepth: 4, Responder: 4, RNRRetry: 7, Retry: 7}
	n.request(target, initiator, listener.LocalAddr(), p)
	target.agree(p)
	initiator.next(verbs.EventEstablished)
	target.next(verbs.EventEstablished)
	return target, initiator
}
