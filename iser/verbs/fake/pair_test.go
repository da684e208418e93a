package fake

import (
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lunar/iser/verbs"
)

// side is one end of a connection with what a test needs of it.
type side struct {
	t      *testing.T
	host   *Host
	events verbs.EventChannel
	pd     verbs.PD
	ch     verbs.CompChannel
	cq     verbs.CQ
	id     verbs.ID
	qp     verbs.QP
	mem    []byte
	mr     verbs.MR
}

var (
	targetAddr    = netip.MustParseAddr("10.0.0.1")
	initiatorAddr = netip.MustParseAddr("10.0.0.2")
	portal        = netip.AddrPortFrom(targetAddr, 3260)
	limits        = verbs.QPLimits{SendWR: 16, RecvWR: 16, SendSGE: 4, Inline: 208}
)

const everything = verbs.AccessLocalWrite | verbs.AccessRemoteRead | verbs.AccessRemoteWrite

func must[V any](v V, err error) func(t *testing.T) V {
	return func(t *testing.T) V {
		t.Helper()
		ok(t, err)
		return v
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// open makes everything of a side but its connection.
func open(t *testing.T, h *Host, cqe int) *side {
	d := h.Device(0)
	s := &side{t: t, host: h, mem: make([]byte, 4096)}
	s.events = must(h.OpenEvents())(t)
	s.pd = must(d.AllocPD())(t)
	s.ch = must(d.OpenCompletions())(t)
	s.cq = must(d.CreateCQ(cqe, s.ch, 0))(t)
	s.mr = must(s.pd.Register(s.mem, everything))(t)
	return s
}

func (s *side) close() {
	s.t.Helper()
	if s.qp != nil {
		ok(s.t, s.qp.Destroy())
	}
	if s.id != nil {
		ok(s.t, s.id.Destroy())
	}
	ok(s.t, s.mr.Deregister())
	_, err := s.ch.Drain()
	ok(s.t, err)
	ok(s.t, s.cq.Destroy())
	ok(s.t, s.ch.Destroy())
	ok(s.t, s.pd.Dealloc())
	ok(s.t, s.events.Close())
}

// next is the next event, of the expected type.
func (s *side) next(expected verbs.EventType) verbs.Event {
	s.t.Helper()
	var e verbs.Event
	if !must(s.events.Next(&e))(s.t) {
		s.t.Fatalf("found no event, expected %v", expected)
	}
	if e.Type != expected {
		s.t.Fatalf("found event %v, expected %v", e.Type, expected)
	}
	return e
}

// poll returns what completed.
func (s *side) poll() []verbs.WC {
	s.t.Helper()
	out := make([]verbs.WC, 64)
	return out[:must(s.cq.Poll(out))(s.t)]
}

// one is the only completion, of the expected id and status.
func (s *side) one(id uint64, expected verbs.Status) verbs.WC {
	s.t.Helper()
	found := s.poll()
	if len(found) != 1 || found[0].ID != id || found[0].Status != expected {
		s.t.Fatalf("found completions %v, expected one of %d with %v", found, id, expected)
	}
	return found[0]
}

func (s *side) sge(offset, n int) verbs.SGE {
	return verbs.SGE{Addr: verbs.Addr(s.mem) + uint64(offset), Len: uint32(n), LKey: s.mr.LKey()}
}

func (s *side) receive(id uint64, offset, n int) {
	s.t.Helper()
	must(s.qp.PostRecv([]uint64{id}, []verbs.SGE{s.sge(offset, n)}))(s.t)
}

func (s *side) post(wr verbs.WR, sges ...verbs.SGE) {
	s.t.Helper()
	wr.NSGE = uint16(len(sges))
	must(s.qp.PostSend([]verbs.WR{wr}, sges))(s.t)
}

// pair is a target and an initiator on a fabric that the test drives.
func pair(t *testing.T, o Options) (f *Fabric, target, initiator *side) {
	o.Manual = true
	f = New(t, o)
	target = open(t, f.Host("target", false, DeviceOptions{Name: "rxe0", Addr: targetAddr}), 64)
	initiator = open(t, f.Host("initiator", true, DeviceOptions{Name: "rxe1", Addr: initiatorAddr}), 64)
	return f, target, initiator
}

// request leaves the target with a connection request, and a QP for it.
func (s *side) request(f *Fabric, target *side, p verbs.ConnParam) verbs.Event {
	s.t.Helper()
	s.id = must(s.events.Resolve(portal, time.Second))(s.t)
	s.qp = must(s.id.CreateQP(s.pd, s.cq, limits))(s.t)
	ok(s.t, s.id.Connect(p))
	f.Settle()
	e := target.next(verbs.EventConnectRequest)
	target.id = e.ID
	target.qp = must(e.ID.CreateQP(target.pd, target.cq, limits))(s.t)
	return e
}

// connected is a pair with a connection on which each side may have 2 RDMA READs.
func connected(t *testing.T, o Options) (f *Fabric, target, initiator *side) {
	t.Helper()
	f, target, initiator = pair(t, o)
	listener := must(target.events.Listen(portal, 8))(t)
	p := verbs.ConnParam{InitiatorDepth: 2, Responder: 2, RNRRetry: 7, Retry: 7}
	initiator.request(f, target, p)
	ok(t, target.id.Accept(p))
	f.Settle()
	initiator.next(verbs.EventEstablished)
	target.next(verbs.EventEstablished)
	ok(t, listener.Destroy())
	t.Cleanup(func() {
		initiator.close()
		target.close()
	})
	return f, target, initiator
}

// breached takes the fabric's breaches and expects that many.
func breached(t *testing.T, f *Fabric, expected int) {
	t.Helper()
	if found := f.Breaches(); len(found) != expected {
		t.Fatalf("found breaches %q, expected %d", found, expected)
	}
}

func readable(t *testing.T, fd int) bool {
	t.Helper()
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	return must(unix.Poll(poll, 0))(t) == 1
}

func sleep(fd int) {
	for {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
		if err != unix.EINTR {
			return
		}
	}
}
