package link

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"lunar/cluster/link/wire"
	"lunar/internal/greetings"
	"lunar/internal/places"
)

// accept takes the connections that other nodes make.
func (l *Links) accept() {
	door := greetings.Door{Listener: l.config.Transport.Listener, Told: func(why error) { // no file descriptors, perhaps
		l.config.Logger.Warn("connections of other nodes cannot be accepted", "error", why)
	}}
	for {
		raw, err := door.Accept()
		switch {
		case err != nil:
			return
		case l.ctx.Err() != nil:
			wire.HangUp(raw)
			return
		}
		from, _ := places.AddressOf(raw)
		if !l.greetings.Begin(raw, l.classOf(from), from) {
			wire.HangUp(raw)
			continue
		}
		l.rest.Go(func() {
			c, err := l.greet(raw)
			l.greetings.End(raw)
			if err != nil {
				wire.HangUp(raw)
				l.config.Logger.Debug("a connection was not taken as another node's", "from", raw.RemoteAddr().String(), "error", err)
				return
			}
			l.serve(c)
		})
	}
}

// greet finds out who has connected, and has the connection replace an earlier one.
func (l *Links) greet(raw net.Conn) (*conn, error) {
	ctx, cancel := context.WithTimeout(l.ctx, greetTime)
	defer cancel()
	defer context.AfterFunc(ctx, func() { wire.HangUp(raw) })()
	name, err := l.config.Transport.Prove(ctx, raw)
	if err != nil {
		return nil, err
	}
	l.greetings.Proven(raw)
	h, err := wire.ReadHello(raw)
	if err != nil {
		return nil, err
	}
	own := l.hello(h.Way)
	p, err := l.admit(name, h)
	if err != nil {
		own.Refused = err.Error()
		return nil, errors.Join(err, own.Write(raw))
	}
	c := p.newConn(raw, h.Incarnation, h.Way, false)
	p.replace(c)
	if err := own.Write(raw); err != nil || ctx.Err() != nil {
		p.drop(c)
		c.Abandon()
		return nil, errors.Join(err, ctx.Err())
	}
	return c, nil
}

// classOf is what is known of an address: that it is a node's, or nothing.
func (l *Links) classOf(from netip.Addr) places.Class {
	for _, p := range *l.peers.Load() {
		p.mu.Lock()
		at, err := netip.ParseAddrPort(p.at.At)
		is := p.forsake != nil
		p.mu.Unlock()
		if is && err == nil && places.Host(at.Addr()) == places.Host(from) {
			return places.Known
		}
	}
	return places.Stranger
}

// admit finds the node that a connection is of.
func (l *Links) admit(name string, h wire.Hello) (*peer, error) {
	if err := h.Judge(l.config.Cluster, name); err != nil {
		return nil, err
	}
	if name == l.config.Node {
		return nil, fmt.Errorf("found the name of this node, %q, expected another one", name)
	}
	p := l.peerOf(name)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.ins {
		if c != nil && c.from.Incarnation == p.at.Incarnation && h.Incarnation != p.at.Incarnation {
			return nil, fmt.Errorf("another process is the node %q, and is connected", name)
		}
	}
	return p, nil
}

// errReplaced ends a connection for another one.
var errReplaced = errors.New("the node has made another connection")

// replace has a connection be that of its way. Nothing goes on any more then of the one before,
// and of all that another process of the node has made.
func (p *peer) replace(c *conn) {
	p.admission.Lock()
	defer p.admission.Unlock()
	p.mu.Lock()
	var old []*conn
	for way, o := range p.ins {
		if o != nil && (way == c.way || o.from.Incarnation != c.from.Incarnation) {
			old = append(old, o)
			p.ins[way] = nil
		}
	}
	p.mu.Unlock()
	for _, o := range old {
		o.End(errReplaced)
		<-o.Gone()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ins[c.way] = c
}

// drop has a connection be that of its way no more.
func (p *peer) drop(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ins[c.way] == c {
		p.ins[c.way] = nil
	}
}

// serve reads what a node sends on a connection until it ends.
func (l *Links) serve(c *conn) {
	defer context.AfterFunc(l.ctx, func() { c.End(wire.ErrClosed) })()
	err := c.Run()
	p := c.peer
	p.drop(c)
	if c.way != beats || errors.Is(err, errReplaced) {
		return
	}
	p.mu.Lock()
	ins := p.ins
	p.mu.Unlock()
	for _, o := range ins {
		if o != nil && o.way != beats && o.from == c.from {
			o.End(err)
		}
	}
	p.deaf()
}
