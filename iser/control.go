package iser

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"lunar/internal/evloop"
	"lunar/iser/verbs"
	"lunar/target"
)

// control is the goroutine that may block: it takes the events of the connection
// manager and of the devices, and makes and destroys what connections consist of.
type control struct {
	transport *Transport
	events    verbs.EventChannel
	wake      int // eventfd
	ended     chan struct{}

	portals map[verbs.ID]*portal // all that follows is the goroutine's
	conns   map[verbs.ID]*conn
	refused time.Time // when a refusal was last logged

	mu struct {
		sync.Mutex
		orders []func()
		closed bool
	}
}

var errClosed = errors.New("the iSER transport is closed")

func openControl(t *Transport) (*control, error) {
	events, err := t.config.Provider.OpenEvents()
	if err != nil {
		return nil, err
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("eventfd: %w", err), events.Close())
	}
	c := &control{
		transport: t, events: events, wake: wake, ended: make(chan struct{}),
		portals: map[verbs.ID]*portal{}, conns: map[verbs.ID]*conn{},
	}
	go c.run()
	return c, nil
}

// order has the goroutine run f; false: it has ended.
func (c *control) order(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closed {
		return false
	}
	c.mu.orders = append(c.mu.orders, f)
	_, err := unix.Write(c.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	return err == nil || errors.Is(err, unix.EAGAIN) // EAGAIN: it is full of wakes
}

// do runs f on the goroutine and waits for it.
func (c *control) do(f func() error) error {
	done := make(chan error, 1)
	if !c.order(func() { done <- f() }) {
		return errClosed
	}
	return <-done
}

// run waits for events and orders until close.
func (c *control) run() {
	defer close(c.ended)
	fds := []unix.PollFd{{Fd: int32(c.wake), Events: unix.POLLIN}, {Fd: int32(c.events.FD()), Events: unix.POLLIN}}
	for _, d := range c.transport.devices {
		fds = append(fds, unix.PollFd{Fd: int32(d.verbs.AsyncFD()), Events: unix.POLLIN})
	}
	for {
		if _, err := unix.Poll(fds, -1); err != nil && !errors.Is(err, unix.EINTR) {
			c.transport.log.Error("iSER: waiting for events failed: no more connections are taken", "error", err)
			return
		}
		c.takeEvents()
		for i, d := range c.transport.devices {
			if fds[2+i].Revents != 0 && !c.takeAsync(d) {
				fds[2+i].Fd = -1 // poll passes it over
			}
		}
		if c.takeOrders() {
			return
		}
	}
}

// takeOrders runs what was ordered; true: close was.
func (c *control) takeOrders() (closed bool) {
	var count [8]byte
	_, _ = unix.Read(c.wake, count[:]) // EAGAIN: nobody has woken it
	for {
		c.mu.Lock()
		orders := c.mu.orders
		c.mu.orders = nil
		closed = c.mu.closed
		c.mu.Unlock()
		if len(orders) == 0 {
			return closed
		}
		for _, f := range orders {
			f()
		}
	}
}

// close ends the goroutine; no connection is left.
func (c *control) close() error {
	c.mu.Lock()
	already := c.mu.closed
	c.mu.closed = true
	c.mu.Unlock()
	if already {
		return nil
	}
	_, _ = unix.Write(c.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // as in order
	<-c.ended
	return errors.Join(c.events.Close(), unix.Close(c.wake))
}

// takeEvents acts on all events of the connection manager that are there.
func (c *control) takeEvents() {
	for {
		var e verbs.Event
		ok, err := c.events.Next(&e)
		if err != nil {
			c.transport.log.Error("iSER: connection manager event", "error", err)
			return
		}
		if !ok {
			return
		}
		c.take(&e)
	}
}

// take acts on an event.
func (c *control) take(e *verbs.Event) {
	if e.Type == verbs.EventConnectRequest {
		c.request(e)
		return
	}
	if p := c.portals[e.ID]; p != nil {
		c.portalEvent(p, e)
		return
	}
	conn := c.conns[e.ID]
	if conn == nil {
		return
	}
	var why error
	switch e.Type {
	case verbs.EventDisconnected:
		why = errPeerClosed
	case verbs.EventDeviceRemoval:
		c.removeDevice(conn.group.device)
		return
	case verbs.EventConnectError, verbs.EventUnreachable, verbs.EventRejected:
		why = fmt.Errorf("connection failed: %s (%d)", e.Type, e.Status)
	default: // established, address change, the end of the time wait
		return
	}
	conn.closeLater(why)
}

// portalEvent is one of a listener: its device goes.
func (c *control) portalEvent(p *portal, e *verbs.Event) {
	if e.Type != verbs.EventDeviceRemoval {
		return
	}
	if d := c.transport.device(e.Device); d != nil {
		c.removeDevice(d)
	}
	c.transport.log.Error("iSER portal closed: its RDMA device is being removed", "portal", p.addr.String())
	delete(c.portals, e.ID)
	p.id = nil
	if err := e.ID.Destroy(); err != nil {
		c.transport.log.Warn("iSER portal", "portal", p.addr.String(), "error", err)
	}
}

// takeAsync acts on the asynchronous events of a device; false: there will be no
// more.
func (c *control) takeAsync(d *device) bool {
	var e verbs.AsyncEvent
	for {
		ok, err := d.verbs.NextAsync(&e)
		if err != nil || !ok {
			return err == nil
		}
		switch e.Type {
		case verbs.AsyncCommEst:
			c.ofQP(d, e.QP, func(conn *conn) { conn.report(conn.id.Notify()) })
		case verbs.AsyncQPFatal, verbs.AsyncQPRequest, verbs.AsyncQPAccess:
			c.ofQP(d, e.QP, func(conn *conn) { conn.closeLater(fmt.Errorf("the device reports: %s", e.Type)) })
		case verbs.AsyncDeviceFatal:
			c.removeDevice(d)
		case verbs.AsyncCQError:
			d.log.Error("RDMA device failed: its connections are closed", "device", d.name, "event", e.Type.String())
			c.closeConns(d, fmt.Errorf("the device reports: %s", e.Type))
		case verbs.AsyncPortError:
			d.log.Warn("RDMA port is down", "device", d.name, "port", e.Port)
		case verbs.AsyncPortActive:
			d.log.Info("RDMA port is active", "device", d.name, "port", e.Port)
		}
	}
}

// removeDevice ends the use of a device that is removed or has failed for good. It is freed when the
// last of its connections has ended.
func (c *control) removeDevice(d *device) {
	if d.gone {
		return
	}
	d.gone = true
	d.log.Error("RDMA device is being removed, or has failed: its connections are closed", "device", d.name)
	c.closeConns(d, errRemoved)
	c.freeIfUnused(d)
}

// closeConns ends the connections of a device.
func (c *control) closeConns(d *device, why error) {
	for _, conn := range c.conns {
		if conn.group.device == d {
			conn.closeLater(why)
		}
	}
}

// freeIfUnused gives back what a lost device has: the kernel may wait for it.
func (c *control) freeIfUnused(d *device) {
	for _, conn := range c.conns {
		if conn.group.device == d {
			return
		}
	}
	if err := d.close(); err != nil {
		d.log.Warn("RDMA device closed", "error", err)
		return
	}
	d.log.Info("RDMA device closed", "device", d.name)
}

// ofQP calls f for the connection of a queue pair, if it is still there.
func (c *control) ofQP(d *device, number uint32, f func(*conn)) {
	for _, conn := range c.conns {
		if conn.group.device == d && conn.number == number {
			f(conn)
		}
	}
}

// closeLater ends a connection from the control goroutine.
func (c *conn) closeLater(why error) {
	c.loop.Post(evloop.Func(func() {
		if c.r != nil {
			defer c.r.Contain()
		}
		c.lost(why)
	}))
}

// report logs an error that changes nothing.
func (c *conn) report(err error) {
	if err != nil {
		c.log.Debug("iSER connection", "error", err)
	}
}

// request takes a connection request: it is accepted, or refused and forgotten.
func (c *control) request(e *verbs.Event) {
	p := c.portals[e.Listener]
	var accept *func(target.LoginTransport)
	if p != nil {
		accept = p.accept.Load()
	}
	if accept == nil {
		c.refuse(e, errors.New("its portal is closed"))
		return
	}
	conn, err := c.build(p, e)
	if err != nil {
		c.refuse(e, err)
		return
	}
	c.conns[e.ID] = conn
	if err := conn.accept(e); err != nil {
		conn.closeLater(fmt.Errorf("accept: %w", err))
		return
	}
	(*accept)(&entrance{conn: conn, immediate: c.transport.config.Immediate})
}

// refuse rejects a request. Initiators repeat theirs every few seconds: it is not
// logged as often.
func (c *control) refuse(e *verbs.Event, why error) {
	level := slog.LevelDebug
	if time.Since(c.refused) > time.Second {
		c.refused, level = time.Now(), slog.LevelWarn
	}
	c.transport.log.Log(context.Background(), level, "iSER connection refused", "address", e.Peer.String(), "portal", e.Local.String(), "reason", why)
	if err := errors.Join(e.ID.Reject(nil), e.ID.Destroy()); err != nil {
		c.transport.log.Debug("iSER connection refused", "error", err)
	}
}

// build makes the connection that a request asks for: its place on an event
// thread, memory for the login, and the queue pair.
func (c *control) build(p *portal, e *verbs.Event) (*conn, error) {
	d := c.transport.device(e.Device)
	switch {
	case e.Device != nil && ofIWARP(e.Device):
		return nil, errIWARP
	case d == nil:
		return nil, errors.New("its RDMA device came after the start: restart the server to use it")
	case d.gone:
		return nil, errRemoved
	case e.InitiatorDepth == 0:
		return nil, errors.New("it allows no RDMA reads, without which nothing can be written")
	}
	s, err := c.pollGroupFor(d, p, e)
	if err != nil {
		return nil, err
	}
	conn := newConn(c, s, e, c.transport.log, c.transport.config.Invalidate)
	depth := c.transport.config.QueueDepth()
	conn.window = depth
	limits := verbs.QPLimits{
		SendWR: min(3*depth+slack, d.verbs.Caps().MaxWR), RecvWR: depth + slack, SendSGE: 1, Inline: messageHead + controlMost,
	}
	if err := onLoop(s.loop, func() error { return conn.reserve(limits) }); err != nil {
		return nil, err
	}
	if err := conn.makeQP(limits); err != nil {
		return nil, errors.Join(err, onLoop(s.loop, func() error { s.remove(conn); return nil }))
	}
	return conn, nil
}

// pollGroupFor picks the event thread, of those that fit, with the fewest connections.
func (c *control) pollGroupFor(d *device, p *portal, e *verbs.Event) (*pollGroup, error) {
	loops := c.transport.config.Loops(p.tag, e.Local.Addr().Unmap(), e.Peer.Addr().Unmap())
	best := loops[0]
	for _, l := range loops[1:] {
		if d.load(l) < d.load(best) {
			best = l
		}
	}
	return d.pollGroup(best)
}

// reserve takes the connection's place in its poll group, on the event thread.
func (c *conn) reserve(limits verbs.QPLimits) (err error) {
	c.reserved = limits.SendWR + limits.RecvWR
	if c.queue, err = c.group.reserve(c.reserved); err == nil {
		c.group.add(c)
	}
	return err
}

// makeQP makes the queue pair with its first receives posted.
func (c *conn) makeQP(limits verbs.QPLimits) error {
	m := c.group.device.memory
	b, err := m.take((loginSlots+loginSends)*slotSize, c.loop.Memory())
	if err != nil {
		return err
	}
	if c.qp, err = c.id.CreateQP(m.pd, c.queue.cq, limits); err != nil {
		m.give(b)
		return err
	}
	err = onLoop(c.loop, func() error {
		c.number = c.qp.Number()
		c.rx.blocks[0], c.rx.slots[0] = b, loginSlots
		c.tx.most, c.tx.inline = limits.SendWR, min(c.qp.Limits().Inline, limits.Inline)
		c.tx.large = slots{mem: b.mem[loginSlots*slotSize:], size: slotSize, lkey: b.lkey}
		for i := range uint32(loginSlots) {
			c.rx.again = append(c.rx.again, i)
		}
		return c.repost()
	})
	if err != nil {
		err = errors.Join(err, c.qp.Destroy())
		m.give(b)
	}
	return err
}

// accept agrees to the connection request.
func (c *conn) accept(e *verbs.Event) error {
	flags := byte(privateNoZBVA)
	if !c.mayInvalidate {
		flags |= privateNoInvalidate
	}
	return c.id.Accept(verbs.ConnParam{
		InitiatorDepth: uint8(c.depth),
		Responder:      uint8(min(int(e.Responder), c.group.device.verbs.Caps().MaxResponder)),
		RNRRetry:       7, // for ever: the initiator waits for our receives
		Private:        []byte{flags, 0, 0, 0}[:privateLength],
	})
}

// disconnect implements owner.
func (c *control) disconnect(conn *conn) {
	c.order(func() {
		if conn.qpGone {
			return
		}
		if err := conn.id.Disconnect(); err != nil {
			conn.report(err)
			conn.report(conn.qp.Fail())
		}
	})
}

// destroyQP implements owner.
func (c *control) destroyQP(conn *conn, then func()) {
	c.order(func() {
		if conn.qpGone {
			return
		}
		conn.qpGone = true
		conn.report(conn.qp.Destroy())
		conn.loop.Post(evloop.Func(func() {
			if conn.r != nil {
				defer conn.r.Contain()
			}
			then()
		}))
	})
}

// destroy implements owner.
func (c *control) destroy(conn *conn) {
	c.order(func() {
		delete(c.conns, conn.id)
		if !conn.qpGone {
			conn.qpGone = true
			conn.report(conn.qp.Destroy())
		}
		conn.report(conn.id.Destroy())
		for _, b := range conn.rx.blocks {
			conn.group.device.memory.give(b)
		}
		conn.loop.Post(evloop.Func(func() { conn.group.remove(conn) }))
		if d := conn.group.device; d.gone {
			c.freeIfUnused(d)
		}
	})
}
