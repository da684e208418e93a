package fake

import (
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"lunar/iser/verbs"
)

// rejects that the connection manager itself answers with.
const (
	rejectInvalidService = 8
	rejectByConsumer     = 28
)

// id is a connection manager id.
type id struct {
	fabric      *Fabric
	events      *eventChannel
	device      *Device // nil: a listener on all
	local, peer netip.AddrPort
	other       *id // the id of the other side
	qp          *qp
	request     verbs.Event // what the connection request said
	requested   bool        // Connect or a request has happened
	accepted    bool
	established bool
	ended       bool // the connection is over for this side
	answered    bool // Disconnect was called here
	reported    bool // EventDisconnected was delivered
	destroyed   bool
}

// message is a connection message on its way to an id.
type message struct {
	to    *id
	kind  kind
	event verbs.Event
	param verbs.ConnParam
}

// kind of a connection message.
type kind uint8

const (
	request  kind = iota // REQ
	reply                // REP
	readyUse             // RTU
	reject               // REJ
	end                  // DREQ
	endReply             // DREP
)

// deliverable: messages to one id arrive in order.
func (f *Fabric) deliverable(i int) bool {
	for _, m := range f.mail[:i] {
		if m.to == f.mail[i].to {
			return false
		}
	}
	return true
}

func (f *Fabric) post(m message) {
	f.mail = append(f.mail, m)
	f.wake.Signal()
}

// deliver does what a message does at the id that it is for.
func (f *Fabric) deliver(m message) {
	c := m.to
	if c.destroyed || c.device != nil && c.device.down && m.kind != endReply {
		return
	}
	switch m.kind {
	case request:
		c.events.add(m.event)
	case reply:
		c.connected(c.other, m.param)
		c.established = true
		c.event(m.event)
		f.post(message{to: c.other, kind: readyUse, event: verbs.Event{Type: verbs.EventEstablished}})
	case readyUse:
		if !c.established && !c.ended {
			c.established = true
			c.event(m.event)
		}
	case reject:
		c.ended = true
		c.event(m.event)
	case end:
		if c.established || c.accepted {
			c.disconnected()
		}
	case endReply:
		c.disconnected()
	}
}

func (c *id) disconnected() {
	c.ended = true
	if !c.reported {
		c.reported = true
		c.event(verbs.Event{Type: verbs.EventDisconnected})
	}
}

// connected makes the QP ready with what was agreed: ours is this side's part.
func (c *id) connected(other *id, ours verbs.ConnParam) {
	c.other = other
	if c.qp == nil || c.qp.state != initial {
		return
	}
	c.qp.state, c.qp.peer = ready, other.qp
	c.qp.readDepth, c.qp.peerDepth, c.qp.rnrRetry = int(ours.InitiatorDepth), int(ours.Responder), ours.RNRRetry
}

// event queues an event about this id.
func (c *id) event(e verbs.Event) {
	e.ID, e.Local, e.Peer = c, c.local, c.peer
	if c.device != nil {
		e.Device = c.device
	}
	c.events.add(e)
}

// Device implements verbs.ID.
func (c *id) Device() verbs.Device {
	if c.device == nil {
		return nil
	}
	return c.device
}

// LocalAddr implements verbs.ID.
func (c *id) LocalAddr() netip.AddrPort { return c.local }

// PeerAddr implements verbs.ID.
func (c *id) PeerAddr() netip.AddrPort { return c.peer }

// call runs a control call of an id.
func (c *id) call(name string, run func() error) error {
	f := c.fabric
	err := f.enter(name)
	defer f.mu.Unlock()
	if err != nil {
		return err
	}
	if c.destroyed {
		f.breach("%s on an id that was destroyed", name)
		return fmt.Errorf("%s: %w", name, unix.EINVAL)
	}
	if err := run(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	f.wake.Signal()
	return nil
}

// Connect implements verbs.ID.
func (c *id) Connect(p verbs.ConnParam) error {
	return c.call("rdma_connect", func() error {
		if c.requested || c.qp == nil || len(p.Private) > verbs.MaxPrivate {
			return unix.EINVAL
		}
		c.requested = true
		c.request = verbs.Event{InitiatorDepth: p.InitiatorDepth, Responder: p.Responder, RNRRetry: p.RNRRetry}
		listener, device := c.fabric.listener(c.peer)
		switch {
		case device == nil || device.down || c.device.down:
			c.fabric.post(message{to: c, kind: reject, event: verbs.Event{Type: verbs.EventUnreachable, Status: -int32(unix.ETIMEDOUT)}})
		case listener == nil:
			c.fabric.post(message{to: c, kind: reject, event: verbs.Event{Type: verbs.EventRejected, Status: rejectInvalidService}})
		default:
			c.fabric.request(c, listener, device, p)
		}
		return nil
	})
}

// listener finds who listens on an address and the device that has it.
func (f *Fabric) listener(addr netip.AddrPort) (*id, *Device) {
	device := f.deviceOf(addr.Addr())
	if device == nil {
		return nil, nil
	}
	if l := f.listeners[place{device.host, addr}]; l != nil {
		return l, device
	}
	all := netip.IPv6Unspecified()
	if addr.Addr().Is4() {
		all = netip.IPv4Unspecified()
	}
	return f.listeners[place{device.host, netip.AddrPortFrom(all, addr.Port())}], device
}

func (f *Fabric) deviceOf(addr netip.Addr) *Device {
	for _, d := range f.devices {
		if d.options.Addr == addr && !d.removed {
			return d
		}
	}
	return nil
}

// request makes the id of a connection request at the listener.
func (f *Fabric) request(from, listener *id, device *Device, p verbs.ConnParam) {
	c := &id{fabric: f, events: listener.events, device: device, local: from.peer, peer: from.local, other: from, requested: true}
	from.other = c
	f.objects[c] = "connection id"
	c.events.ids++
	// What one side may have outstanding is what the other serves.
	e := verbs.Event{
		Type: verbs.EventConnectRequest, ID: c, Listener: listener, Device: device,
		InitiatorDepth: p.Responder, Responder: p.InitiatorDepth, RNRRetry: p.RNRRetry,
		PrivateLen: verbs.MaxPrivate, Local: c.local, Peer: c.peer,
	}
	copy(e.Private[:], p.Private)
	c.request = e
	f.post(message{to: c, kind: request, event: e})
}

// Accept implements verbs.ID.
func (c *id) Accept(p verbs.ConnParam) error {
	return c.call("rdma_accept", func() error {
		caps := verbs.Caps{}
		if c.device != nil {
			caps = c.device.options.Caps
		}
		if c.qp == nil || c.accepted || c.request.Type != verbs.EventConnectRequest || len(p.Private) > verbs.MaxPrivate {
			return unix.EINVAL
		}
		if int(p.InitiatorDepth) > min(caps.MaxInitiatorDepth, int(c.request.InitiatorDepth)) || int(p.Responder) > caps.MaxResponder {
			c.fabric.breach("%s: accepted with initiator depth %d and responder %d, the peer offers %d and wants %d",
				c.device.host.name, p.InitiatorDepth, p.Responder, c.request.InitiatorDepth, c.request.Responder)
			return unix.EINVAL
		}
		if c.other.destroyed {
			c.ended = true
			c.event(verbs.Event{Type: verbs.EventConnectError, Status: -int32(unix.ECONNRESET)})
			return nil
		}
		c.accepted = true
		// Each side's RNRRetry governs what the other side sends.
		c.connected(c.other, verbs.ConnParam{InitiatorDepth: p.InitiatorDepth, Responder: p.Responder, RNRRetry: c.request.RNRRetry})
		e := verbs.Event{
			Type: verbs.EventEstablished, InitiatorDepth: p.Responder, Responder: p.InitiatorDepth,
			RNRRetry: p.RNRRetry, PrivateLen: verbs.MaxPrivate,
		}
		copy(e.Private[:], p.Private)
		c.fabric.post(message{to: c.other, kind: reply, event: e, param: verbs.ConnParam{
			InitiatorDepth: min(c.other.request.InitiatorDepth, p.Responder), Responder: p.InitiatorDepth, RNRRetry: p.RNRRetry,
		}})
		return nil
	})
}

// Reject implements verbs.ID.
func (c *id) Reject(private []byte) error {
	return c.call("rdma_reject", func() error {
		if c.accepted || c.ended || c.request.Type != verbs.EventConnectRequest || len(private) > verbs.MaxPrivate {
			return unix.EINVAL
		}
		c.refuse(private)
		return nil
	})
}

func (c *id) refuse(private []byte) {
	c.ended = true
	e := verbs.Event{Type: verbs.EventRejected, Status: rejectByConsumer, PrivateLen: verbs.MaxPrivate}
	copy(e.Private[:], private)
	c.fabric.post(message{to: c.other, kind: reject, event: e})
}

// Notify implements verbs.ID.
func (c *id) Notify() error {
	return c.call("rdma_notify", func() error {
		if c.accepted && !c.established && !c.ended {
			c.established = true
			c.event(verbs.Event{Type: verbs.EventEstablished})
		}
		return nil
	})
}

// Disconnect implements verbs.ID.
func (c *id) Disconnect() error {
	return c.call("rdma_disconnect", func() error {
		c.disconnect()
		return nil
	})
}

func (c *id) disconnect() {
	if c.qp != nil {
		c.qp.fail()
	}
	if c.answered || c.other == nil || !c.accepted && !c.established {
		return
	}
	c.answered = true
	if c.ended { // the peer was first: our answer is what it waits for
		c.fabric.post(message{to: c.other, kind: endReply})
		return
	}
	c.ended = true
	switch {
	case c.device.down || c.other.device.down || c.other.destroyed:
		c.fabric.post(message{to: c, kind: endReply}) // after time-outs
	default:
		c.fabric.post(message{to: c.other, kind: end})
	}
}

// Destroy implements verbs.ID.
func (c *id) Destroy() error {
	f := c.fabric
	err := f.enter("rdma_destroy_id")
	defer f.mu.Unlock()
	users := 0
	if c.qp != nil {
		users = 1
	}
	if err := f.destroyLocked("rdma_destroy_id", c, users, err); err != nil {
		return err
	}
	if at := (place{c.events.host, c.local}); f.listeners[at] == c {
		delete(f.listeners, at)
	}
	if c.request.Type == verbs.EventConnectRequest && !c.accepted && !c.ended {
		c.refuse(nil)
	}
	if c.other != nil && c.other.accepted && !c.established && !c.accepted && !c.ended { // in the middle of the handshake
		f.post(message{to: c.other, kind: reject, event: verbs.Event{Type: verbs.EventRejected, Status: rejectByConsumer}})
	}
	c.disconnect()
	c.destroyed = true
	c.events.forget(c)
	return nil
}

// Resolve implements verbs.EventChannel.
func (e *eventChannel) Resolve(addr netip.AddrPort, _ time.Duration) (verbs.ID, error) {
	f := e.fabric
	err := f.enter("rdma_resolve_addr")
	defer f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	for _, d := range e.host.devices {
		if d.removed || d.options.Addr.Is4() != addr.Addr().Is4() {
			continue
		}
		f.lastPort++
		c := &id{fabric: f, events: e, device: d, local: netip.AddrPortFrom(d.options.Addr, f.lastPort), peer: addr}
		f.objects[c] = "connection id"
		e.ids++
		return c, nil
	}
	return nil, fmt.Errorf("rdma_resolve_addr %s: %w", addr, unix.ENODEV)
}
