package server

import (
	"context"
	"net"
	"strconv"
	"sync"
	"time"

	"lunar/control"
	"lunar/internal/places"
	"lunar/internal/refusals"
)

// crowdBounds bound the connections of one port. Once all places are taken, a client
// that is slow to ask, or to read its answer, loses its place to others. A client
// whose request is being worked on keeps it.
var crowdBounds = places.Bounds{Places: maxConnections, PerHolder: maxConnections / 4, PerNetwork: maxConnections / 2, Patience: writeTimeout}

// waitingBounds bound those connections whose answer waits because they have guessed, or
// ask too often. They have places of their own, and those of nobody who is honest.
var waitingBounds = places.Bounds{Places: maxConnections / 4, PerHolder: maxConnections / 32, PerNetwork: maxConnections / 8}

// crowd is a listener that has a limited number of connections at a time:
// descriptors are for sessions in the first place.
type crowd struct {
	net.Listener
	refusals   *refusals.Counters
	groups     func() map[uint32]control.Role // of the system, that have a role
	admission  *admission                     // of those over TCP
	handshakes bool                           // TLS stands before it: connecting costs

	mu      sync.Mutex
	table   places.Table[*placed]
	waiting places.Table[*placed]
}

// Accept implements net.Listener.
func (c *crowd) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		p := &placed{Conn: conn, crowd: c, gone: make(chan struct{})}
		if c.admit(p) {
			return p, nil
		}
		conn.Close()
	}
}

func (c *crowd) admit(p *placed) bool {
	h := c.holderOf(p.Conn)
	if from, ok := places.AddressOf(p.Conn); ok && c.handshakes && h.Class == places.Stranger {
		p.wait = c.admission.wait(from, false)
	}
	return c.enter(p, h)
}

// enter gives a connection a place. Those who are no strangers have further ones over TCP,
// where whoever reaches the port can take those of strangers.
func (c *crowd) enter(p *placed, h places.Holder) bool {
	b := crowdBounds
	if _, ok := places.AddressOf(p.Conn); ok && h.Class != places.Stranger {
		b.Places += maxConnections / 2
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.take(&c.table, p, h, b)
}

// take gives a connection a place in one of the tables; who loses it is broken off. The
// caller has c.mu.
func (c *crowd) take(in *places.Table[*placed], p *placed, h places.Holder, b places.Bounds) bool {
	lost, displaced, ok := in.Take(p, h, b, 0, time.Now())
	if displaced {
		lost.Conn.Close() // the server closes lost itself when it notices
	}
	if displaced || !ok {
		c.refusals.Add(refusals.ControlPlaces)
	}
	return ok
}

// holderOf is who is at the other end: a local user, of whom root comes before all
// others, and those who may ask before those who may not; or an address.
func (c *crowd) holderOf(conn net.Conn) places.Holder {
	if p := peerOf(conn); p != nil {
		h := places.Holder{Class: places.Proven, Name: "uid " + strconv.Itoa(int(p.Uid))}
		switch {
		case p.Uid == 0:
			h.Class = places.Known
		case p.role(c.groups()) == control.NoRole:
			h.Class = places.Stranger
		}
		return h
	}
	if from, ok := places.AddressOf(conn); ok {
		return c.admission.holder(from)
	}
	return places.Holder{}
}

// placed is a connection that has one of the places.
type placed struct {
	net.Conn
	crowd  *crowd
	wait   time.Duration // before it is listened to
	heard  sync.Once
	gone   chan struct{} // closed when the connection is
	ending sync.Once
}

// Read implements net.Conn.
func (p *placed) Read(b []byte) (int, error) {
	p.heard.Do(func() {
		if p.wait > 0 {
			pause(p.gone, p.wait)
		}
	})
	return p.Conn.Read(b)
}

// Close implements net.Conn.
func (p *placed) Close() error {
	p.ending.Do(func() { close(p.gone) })
	p.crowd.mu.Lock()
	p.crowd.table.Release(p)
	p.crowd.waiting.Release(p)
	p.crowd.mu.Unlock()
	return p.Conn.Close()
}

// works says whether the connection's request is being worked on.
func (p *placed) works(yes bool) {
	p.crowd.mu.Lock()
	p.crowd.table.Progress(p, yes)
	p.crowd.mu.Unlock()
}

// proves says that whoever is at the other end over TCP may ask.
func (p *placed) proves() {
	from, ok := places.AddressOf(p.Conn)
	if !ok {
		return
	}
	p.crowd.admission.proves(from)
	h := p.crowd.admission.holder(from)
	p.crowd.mu.Lock()
	defer p.crowd.mu.Unlock()
	if was, ok := p.crowd.table.Holder(p); ok && was != h {
		p.crowd.table.Pass(p, p, h)
	}
}

// waits waits without the place. It reports whether the connection has one again, and its
// client is there.
func (p *placed) waits(ctx context.Context, d time.Duration) bool {
	c, h := p.crowd, p.crowd.holderOf(p.Conn)
	c.mu.Lock()
	c.table.Release(p)
	ok := c.take(&c.waiting, p, h, waitingBounds)
	c.mu.Unlock()
	if !ok || !pause(ctx.Done(), d) {
		return false
	}
	c.mu.Lock()
	c.waiting.Release(p)
	c.mu.Unlock()
	return c.enter(p, h)
}

// pause waits, and reports whether the client is there still.
func pause(gone <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-gone:
		return false
	}
}
