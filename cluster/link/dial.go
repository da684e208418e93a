package link

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"time"

	"lunar/cluster/link/wire"
)

const (
	greetTime = 5 * time.Second // in which both have to say who they are
	soonest   = 50 * time.Millisecond
	latest    = 2 * time.Second // until it is tried again to reach a node
)

// keep keeps one of the connections to a node.
func (l *Links) keep(ctx context.Context, p *peer, way int) {
	for wait := soonest; ctx.Err() == nil; wait = min(2*wait, latest) {
		c, err := l.dial(ctx, p, way)
		if err == nil {
			since := time.Now()
			err = l.use(ctx, c)
			if time.Since(since) > wait { // it was there for longer than it was away
				wait = soonest
			}
		}
		p.fails(ctx, err)
		select {
		case <-time.After(wait/2 + rand.N(wait/2)):
		case <-ctx.Done():
		}
	}
}

// fails notes, and logs once, why a node cannot be reached.
func (p *peer) fails(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	p.mu.Lock()
	again := p.why != ""
	p.why = err.Error()
	p.mu.Unlock()
	if !again {
		p.links.config.Logger.Warn("there is no link to another node", "node", p.name, "address", p.address(), "error", err)
	}
}

func (p *peer) address() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at.At
}

// dial makes a connection.
func (l *Links) dial(ctx context.Context, p *peer, way int) (*conn, error) {
	within, cancel := context.WithTimeout(ctx, greetTime)
	defer cancel()
	raw, err := l.config.Transport.Dial(within, p.name, p.address())
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(within, func() { wire.HangUp(raw) })()
	h, err := l.introduce(raw, p.name, way)
	if err = errors.Join(err, within.Err()); err != nil {
		wire.HangUp(raw)
		return nil, err
	}
	return p.newConn(raw, h.Incarnation, way, true), nil
}

// introduce says who this node is, and hears who the other one is.
func (l *Links) introduce(raw net.Conn, name string, way int) (h wire.Hello, err error) {
	if err = l.hello(way).Write(raw); err == nil {
		h, err = wire.ReadHello(raw)
	}
	if err == nil {
		err = h.Judge(l.config.Cluster, name)
	}
	return h, err
}

func (l *Links) hello(way int) wire.Hello {
	return wire.Hello{Protocol: wire.Protocol, Cluster: l.config.Cluster, Node: l.config.Node, Incarnation: l.config.Incarnation, Way: way}
}

// use has a connection be that of its way until it ends.
func (l *Links) use(ctx context.Context, c *conn) error {
	p := c.peer
	defer context.AfterFunc(ctx, func() { c.End(wire.ErrClosed) })()
	p.outs[c.way].Store(c)
	p.stands()
	if c.way == beats {
		l.rest.Go(c.beats)
	}
	err := c.Run()
	p.outs[c.way].Store(nil)
	p.stands()
	if c.way == beats {
		for i := range p.outs {
			if o := p.outs[i].Load(); o != nil {
				o.End(err)
			}
		}
		p.deaf()
	}
	return err
}

// beats sends them until the connection ends.
func (c *conn) beats() {
	tick := time.NewTicker(c.peer.links.config.Beat)
	defer tick.Stop()
	for {
		if c.SendBeat(uint64(time.Since(began)), c.peer.links.config.Says()) != nil {
			return
		}
		select {
		case <-tick.C:
		case <-c.Stopped():
			return
		}
	}
}
