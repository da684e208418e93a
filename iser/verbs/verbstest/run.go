package verbstest

import (
	"bytes"
	"net/netip"
	"testing"

	"lunar/iser/verbs"
)

// Run tests two providers, which may be the same, on one network. addr is the
// address of a device of the target's.
func Run(t *testing.T, target, initiator verbs.Provider, addr netip.Addr) {
	n := network{target, initiator, addr}
	for _, c := range []struct {
		name string
		test func(t *testing.T, n network)
	}{
		{"capabilities", capabilities},
		{"request and agreement", agreement},
		{"reject", rejected},
		{"nobody listens", nobodyListens},
		{"messages and memory", movement},
		{"long lists", longLists},
		{"notification", notification},
		{"no allocations", allocations},
		{"wrong key", wrongKey},
		{"message longer than its receive", tooLong},
		{"end", end},
		{"failed QP", failedQP},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, n) })
	}
}

func capabilities(t *testing.T, n network) {
	for _, d := range n.target.Devices() {
		c := d.Caps()
		if d.Name() == "" || c.MaxMessage == 0 || c.MaxRegion == 0 || c.MaxQP == 0 || c.MaxWR < limits.SendWR || c.MaxSendSGE < 1 ||
			c.MaxReadSGE < 1 || c.MaxCQE < 256 || c.MaxResponder < 1 || c.MaxInitiatorDepth < 1 || c.CompVectors < 1 {
			t.Errorf("%s: found capabilities %+v", d.Name(), c)
		}
	}
}

// What one side serves, the other may have outstanding.
func agreement(t *testing.T, n network) {
	target, initiator, listener := n.sides(t)
	private := []byte{0x80, 0, 0, 7}
	e := n.request(target, initiator, listener.LocalAddr(),
		verbs.ConnParam{InitiatorDepth: 1, Responder: 16, RNRRetry: 6, Retry: 7, Private: private})
	if e.InitiatorDepth != 16 || e.Responder != 1 || e.RNRRetry != 6 || !bytes.HasPrefix(e.Private[:], private) {
		t.Errorf("found request %+v", e)
	}
	if e.Listener != listener || e.Device == nil || e.ID.Device() != e.Device || e.Local.Addr() != n.addr || !e.Peer.IsValid() {
		t.Errorf("found request %+v", e)
	}
	target.agree(verbs.ConnParam{InitiatorDepth: 8, Responder: 1, RNRRetry: 7, Private: []byte{0xc0}})
	e = initiator.next(verbs.EventEstablished)
	if e.ID != initiator.id || e.Private[0] != 0xc0 {
		t.Errorf("found reply %+v", e)
	}
	if e := target.next(verbs.EventEstablished); e.ID != target.id {
		t.Errorf("found event %+v of another id", e)
	}
	target.ok(target.id.Notify())
}

func rejected(t *testing.T, n network) {
	target, initiator, listener := n.sides(t)
	n.request(target, initiator, listener.LocalAddr(), verbs.ConnParam{})
	target.ok(target.id.Reject([]byte{0x42}))
	if e := initiator.next(verbs.EventRejected); e.Private[0] != 0x42 {
		t.Errorf("found %+v", e)
	}
}

func nobodyListens(t *testing.T, n network) {
	target, initiator, _ := n.sides(t)
	var err error
	initiator.id, err = initiator.events.Resolve(netip.AddrPortFrom(n.addr, 9), patience)
	initiator.ok(err)
	initiator.open(initiator.id.Device())
	initiator.qp, err = initiator.id.CreateQP(initiator.pd, initiator.cq, limits)
	initiator.ok(err)
	initiator.ok(initiator.id.Connect(verbs.ConnParam{}))
	const invalidService = 8
	if e := initiator.next(verbs.EventRejected); e.Status != invalidService {
		t.Errorf("found status %d, expected %d", e.Status, invalidService)
	}
	var e verbs.Event
	if there, err := target.events.Next(&e); there || err != nil {
		t.Errorf("found event %v, error %v", e.Type, err)
	}
}

// One list: an RDMA READ into two segments, a WRITE of many, and a message
// whose bytes are free when the post returns.
func movement(t *testing.T, n network) {
	target, initiator := n.connected(t)
	for i := range initiator.mem {
		initiator.mem[i] = byte(i * 7)
	}
	for i := range target.mem {
		target.mem[i] = byte(i * 13)
	}
	initiator.receive(1, 0, 204)
	const piece = 4096
	header := bytes.Repeat([]byte{0xab}, 76)
	wrs := []verbs.WR{
		initiator.to(verbs.OpRead, 10, 64<<10, verbs.FlagSignaled),
		initiator.to(verbs.OpWrite, 11, 128<<10, 0),
		{ID: 12, Op: verbs.OpSend, Flags: verbs.FlagSignaled | verbs.FlagInline, NSGE: 1},
	}
	var sges []verbs.SGE
	sges = append(sges, target.sge(piece, 1000), target.sge(3*piece, 3000))
	wrs[0].NSGE = 2
	for i := range limits.SendSGE {
		sges = append(sges, target.sge((31-i)*piece, piece))
		wrs[1].NSGE++
	}
	sges = append(sges, verbs.SGE{Addr: verbs.Addr(header), Len: uint32(len(header))})
	expected := bytes.Clone(initiator.mem[64<<10:][:4000])
	var written []byte
	for i := range limits.SendSGE {
		written = append(written, target.mem[(31-i)*piece:][:piece]...)
	}
	posted, err := target.qp.PostSend(wrs, sges)
	target.ok(err)
	if posted != len(wrs) {
		t.Fatalf("found %d posted", posted)
	}
	clear(header)
	if wc := target.completed(10, verbs.StatusOK); wc.Op != verbs.WCRead {
		t.Errorf("found %+v", wc)
	}
	target.completed(12, verbs.StatusOK)
	if wc := initiator.completed(1, verbs.StatusOK); wc.Op != verbs.WCRecv || wc.Len != 76 {
		t.Errorf("found %+v", wc)
	}
	if found := append(bytes.Clone(target.mem[piece:][:1000]), target.mem[3*piece:][:3000]...); !bytes.Equal(found, expected) {
		t.Error("the RDMA READ brought other data")
	}
	if !bytes.Equal(initiator.mem[128<<10:][:len(written)], written) {
		t.Error("the RDMA WRITE wrote other data")
	}
	if !bytes.Equal(initiator.mem[:76], bytes.Repeat([]byte{0xab}, 76)) {
		t.Error("the message has other data")
	}
}

// Lists longer than a doorbell takes are posted whole, in order.
func longLists(t *testing.T, n network) {
	target, initiator := n.connected(t)
	const total = verbs.MaxPost + 20
	ids, sges := make([]uint64, limits.RecvWR), make([]verbs.SGE, limits.RecvWR)
	for i := range ids {
		ids[i], sges[i] = uint64(i), initiator.sge(i*64, 64)
	}
	_, err := initiator.qp.PostRecv(ids, sges)
	initiator.ok(err)
	wrs, from := make([]verbs.WR, total), make([]verbs.SGE, total)
	for i := range wrs {
		wrs[i], from[i] = initiator.to(verbs.OpWrite, uint64(i), 128<<10, 0), target.sge(i, 1)
		wrs[i].NSGE = 1
		target.mem[i] = byte(i)
	}
	wrs[total-1].Flags = verbs.FlagSignaled
	posted, err := target.qp.PostSend(wrs, from)
	target.ok(err)
	if posted != total {
		t.Errorf("found %d posted, expected %d", posted, total)
	}
	target.completed(total-1, verbs.StatusOK)
	if posted, err := target.qp.PostSend(wrs[:2], from[:1]); err == nil {
		t.Errorf("found %d posted of a list with too few segments", posted)
	}
	target.post(verbs.WR{Op: verbs.OpSend, ID: 7, Flags: verbs.FlagSignaled}, target.sge(0, 1))
	target.completed(7, verbs.StatusOK)
	initiator.completed(0, verbs.StatusOK)
	if found := initiator.mem[128<<10]; found != total-1 {
		t.Errorf("found the byte of entry %d last", found)
	}
}

// An armed CQ tells once, of what comes later only.
func notification(t *testing.T, n network) {
	target, initiator := n.connected(t)
	send := func(id uint64) {
		target.receive(id, 0, 64)
		initiator.post(verbs.WR{ID: id, Op: verbs.OpSend, Flags: verbs.FlagSignaled}, initiator.sge(0, 8))
		initiator.completed(id, verbs.StatusOK)
	}
	target.ok(target.cq.Arm())
	send(1)
	if !wait(t, target.ch.FD()) {
		t.Fatal("found no event of an armed CQ")
	}
	send(2)
	target.completed(1, verbs.StatusOK)
	target.completed(2, verbs.StatusOK)
	if n, err := target.ch.Drain(); err != nil || n < 1 {
		t.Errorf("found %d events, error %v", n, err)
	}
	send(3)
	target.poll()
	if n, err := target.ch.Drain(); err != nil || n > 1 {
		t.Errorf("found %d events of a CQ that was not armed anew, error %v", n, err)
	}
}

// The data path does not allocate.
func allocations(t *testing.T, n network) {
	target, initiator := n.connected(t)
	ids, to := []uint64{1}, []verbs.SGE{initiator.sge(0, 64)}
	wrs := []verbs.WR{
		initiator.to(verbs.OpWrite, 2, 4096, 0),
		{ID: 3, Op: verbs.OpSend, Flags: verbs.FlagSignaled | verbs.FlagInline, NSGE: 1},
	}
	wrs[0].NSGE = 1
	sges := []verbs.SGE{target.sge(0, 512), target.sge(1024, 64)}
	out := make([]verbs.WC, 8)
	finish := func(s *side) {
		for {
			if n, err := s.cq.Poll(out); n != 0 || err != nil {
				return
			}
		}
	}
	allocated := testing.AllocsPerRun(100, func() {
		_, _ = initiator.qp.PostRecv(ids, to)
		_ = target.cq.Arm()
		_, _ = target.qp.PostSend(wrs, sges)
		finish(initiator)
		finish(target)
		_, _ = target.ch.Drain()
	})
	if allocated != 0 {
		t.Errorf("found %v allocations for a list", allocated)
	}
}

// The first wrong entry fails with its status, everything else is flushed.
func wrongKey(t *testing.T, n network) {
	target, initiator := n.connected(t)
	target.receive(1, 0, 64)
	initiator.receive(2, 0, 64)
	wr := initiator.to(verbs.OpWrite, 3, 0, 0)
	wr.RKey ^= 0xff
	target.post(wr, target.sge(0, 8))
	target.completed(3, verbs.StatusRemoteAccess)
	target.completed(1, verbs.StatusFlushed)
	target.post(verbs.WR{ID: 5, Op: verbs.OpSend}, target.sge(0, 8))
	target.completed(5, verbs.StatusFlushed)
}

// Both sides fail; devices differ in how they say it.
func tooLong(t *testing.T, n network) {
	target, initiator := n.connected(t)
	initiator.receive(1, 0, 204)
	target.post(verbs.WR{ID: 2, Op: verbs.OpSend}, target.sge(0, 205))
	for _, s := range []*side{target, initiator} {
		if wc := s.any(); wc.Status == verbs.StatusOK || wc.Status == verbs.StatusFlushed {
			t.Errorf("found %v, expected an error", wc.Status)
		}
	}
}

// One side disconnects, the other answers; both flush.
func end(t *testing.T, n network) {
	target, initiator := n.connected(t)
	target.receive(1, 0, 64)
	initiator.receive(2, 0, 64)
	initiator.ok(initiator.id.Disconnect())
	initiator.completed(2, verbs.StatusFlushed)
	target.next(verbs.EventDisconnected)
	target.ok(target.id.Disconnect())
	target.completed(1, verbs.StatusFlushed)
	initiator.next(verbs.EventDisconnected)
	target.ok(target.id.Disconnect())
}

func failedQP(t *testing.T, n network) {
	target, _ := n.connected(t)
	for i := range uint64(3) {
		target.receive(i, 0, 64)
	}
	target.ok(target.qp.Fail())
	for i := range uint64(3) {
		target.completed(i, verbs.StatusFlushed)
	}
}
