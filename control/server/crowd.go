package server

import (
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

// crowd is a listener that has a limited number of connections at a time:
// descriptors are for sessions in the first place.
type crowd struct {
	net.Listener
	refusals *refusals.Counters
	groups   func() map[uint32]control.Role // of the system, that have a role

	mu    sync.Mutex
	table places.Table[*placed]
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
	c.mu.Lock()
	defer c.mu.Unlock()
	lost, displaced, ok := c.table.Take(p, holderOf(p.Conn, c.groups()), crowdBounds, 0, time.Now())
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
func holderOf(conn net.Conn, groups map[uint32]control.Role) places.Holder {
	if p := peerOf(conn); p != nil {
		h := places.Holder{Class: places.Proven, Name: "uid " + strconv.Itoa(int(p.Uid))}
		switch {
		case p.Uid == 0:
			h.Class = places.Known
		case p.role(groups) == control.NoRole:
			h.Class = places.Stranger
		}
		return h
	}
	if a, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		return places.Of(places.Stranger, a.AddrPort().Addr())
	}
	return places.Holder{}
}

// placed is a connection that has one of the places.
type placed struct {
	net.Conn
	crowd  *crowd
	gone   chan struct{} // closed when the connection is
	ending sync.Once
}

// Close implements net.Conn.
func (p *placed) Close() error {
	p.ending.Do(func() { close(p.gone) })
	p.crowd.mu.Lock()
	p.crowd.table.Release(p)
	p.crowd.mu.Unlock()
	return p.Conn.Close()
}

// works says whether the connection's request is being worked on.
func (p *placed) works(yes bool) {
	p.crowd.mu.Lock()
	p.crowd.table.Progress(p, yes)
	p.crowd.mu.Unlock()
}
