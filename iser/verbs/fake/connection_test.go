package fake

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lunar/iser/verbs"
)

// What the initiator serves is what the target may have outstanding.
func TestConnectionRequest(t *testing.T) {
	f, target, initiator := pair(t, Options{})
	listener := must(target.events.Listen(netip.MustParseAddrPort("0.0.0.0:3260"), 8))(t)
	e := initiator.request(f, target, verbs.ConnParam{InitiatorDepth: 1, Responder: 128, RNRRetry: 6, Private: []byte{0x80}})
	if e.InitiatorDepth != 128 || e.Responder != 1 || e.RNRRetry != 6 || e.Private[0] != 0x80 || e.PrivateLen != verbs.MaxPrivate {
		t.Errorf("found request %+v", e)
	}
	if e.Listener != listener || e.Device != target.host.Device(0) || e.Local != portal || e.Peer.Addr() != initiatorAddr {
		t.Errorf("found request %+v", e)
	}
	ok(t, target.id.Accept(verbs.ConnParam{InitiatorDepth: 16, Responder: 1, RNRRetry: 7, Private: []byte{0x40}}))
	f.Settle()
	e = initiator.next(verbs.EventEstablished)
	if e.InitiatorDepth != 1 || e.Responder != 16 || e.RNRRetry != 7 || e.Private[0] != 0x40 {
		t.Errorf("found reply %+v", e)
	}
	if e := target.next(verbs.EventEstablished); e.ID != target.id {
		t.Error("found another id established")
	}
	initiator.close()
	f.Settle()
	target.next(verbs.EventDisconnected)
	ok(t, listener.Destroy())
	target.close()
}

func TestRejects(t *testing.T) {
	f, target, initiator := pair(t, Options{})
	initiator.id = must(initiator.events.Resolve(portal, time.Second))(t)
	initiator.qp = must(initiator.id.CreateQP(initiator.pd, initiator.cq, limits))(t)
	ok(t, initiator.id.Connect(verbs.ConnParam{}))
	f.Settle()
	if e := initiator.next(verbs.EventRejected); e.Status != rejectInvalidService {
		t.Errorf("found status %d where nobody listens", e.Status)
	}
	ok(t, initiator.qp.Destroy())
	ok(t, initiator.id.Destroy())

	listener := must(target.events.Listen(portal, 8))(t)
	if _, err := target.events.Listen(portal, 8); !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("found %v for a second listener", err)
	}
	initiator.request(f, target, verbs.ConnParam{})
	ok(t, target.id.Reject([]byte{7}))
	f.Settle()
	if e := initiator.next(verbs.EventRejected); e.Status != rejectByConsumer || e.Private[0] != 7 {
		t.Errorf("found %+v", e)
	}
	ok(t, listener.Destroy())
	initiator.close()
	target.close()
}

func TestAcceptBeyondTheOffer(t *testing.T) {
	f, target, initiator := pair(t, Options{})
	listener := must(target.events.Listen(portal, 8))(t)
	initiator.request(f, target, verbs.ConnParam{InitiatorDepth: 1, Responder: 4})
	if err := target.id.Accept(verbs.ConnParam{InitiatorDepth: 5}); !errors.Is(err, unix.EINVAL) {
		t.Errorf("found %v", err)
	}
	breached(t, f, 1)
	ok(t, listener.Destroy())
	target.close()
	f.Settle()
	initiator.next(verbs.EventRejected)
	initiator.close()
}

// The first message may come before the connection counts as established.
func TestFirstReceiveAndEstablished(t *testing.T) {
	before, after := 0, 0
	for seed := range uint64(40) {
		f, target, initiator := pair(t, Options{Seed: seed})
		listener := must(target.events.Listen(portal, 8))(t)
		initiator.request(f, target, verbs.ConnParam{})
		target.receive(1, 0, 64)
		ok(t, target.id.Accept(verbs.ConnParam{}))
		f.Step()
		initiator.next(verbs.EventEstablished)
		initiator.post(verbs.WR{Op: verbs.OpSend}, initiator.sge(0, 64))
		f.Step()
		var async verbs.AsyncEvent
		if len(target.poll()) == 1 {
			before++
			if !must(target.host.Device(0).NextAsync(&async))(t) || async.Type != verbs.AsyncCommEst || async.QP != target.qp.Number() {
				t.Fatalf("found event %+v", async)
			}
			ok(t, target.id.Notify())
			ok(t, target.id.Notify())
		} else {
			after++
		}
		target.next(verbs.EventEstablished)
		f.Settle()
		ok(t, listener.Destroy())
		initiator.close()
		target.close()
	}
	if before == 0 || after == 0 {
		t.Errorf("found %d receives before, %d after the event, expected both", before, after)
	}
}

func TestDisconnect(t *testing.T) {
	f, target, initiator := connected(t, Options{})
	target.receive(1, 0, 64)
	initiator.receive(2, 0, 64)
	ok(t, initiator.id.Disconnect())
	initiator.one(2, verbs.StatusFlushed)
	f.Settle()
	target.next(verbs.EventDisconnected)
	var e verbs.Event
	if must(initiator.events.Next(&e))(t) {
		t.Fatalf("found event %v before the peer answered", e.Type)
	}
	ok(t, target.id.Disconnect())
	ok(t, target.id.Disconnect())
	target.one(1, verbs.StatusFlushed)
	f.Settle()
	initiator.next(verbs.EventDisconnected)
	target.post(verbs.WR{ID: 4, Op: verbs.OpSend}, target.sge(0, 8))
	target.one(4, verbs.StatusFlushed)
}

// A QP whose peer is gone fails after retries.
func TestCutCable(t *testing.T) {
	f, target, initiator := connected(t, Options{})
	initiator.receive(1, 0, 64)
	initiator.host.Device(0).Cut()
	target.post(verbs.WR{ID: 2, Op: verbs.OpSend}, target.sge(0, 8))
	f.Settle()
	target.one(2, verbs.StatusRetryExceeded)
	ok(t, target.id.Disconnect())
	f.Settle()
	target.next(verbs.EventDisconnected)
	initiator.host.Device(0).Mend()
}

func TestDeviceRemoval(t *testing.T) {
	f, target, _ := connected(t, Options{})
	target.receive(1, 0, 64)
	target.host.Device(0).Remove()
	target.one(1, verbs.StatusFlushed)
	if e := target.next(verbs.EventDeviceRemoval); e.ID != target.id {
		t.Error("found another id")
	}
	var async verbs.AsyncEvent
	if !must(target.host.Device(0).NextAsync(&async))(t) || async.Type != verbs.AsyncDeviceFatal {
		t.Errorf("found %+v", async)
	}
	if _, err := target.pd.Register(target.mem, everything); !errors.Is(err, unix.EIO) {
		t.Errorf("found %v", err)
	}
	f.Settle()
}
