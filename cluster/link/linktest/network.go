// Package linktest connects nodes in one process by package link, over a network that tests cut
// and slow down. It waits by package time alone, so that a test within testing/synctest decides
// about all of its time.
package linktest

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"lunar/cluster/link"
)

// Network is what nodes reach each other by. As with TCP, what is sent over a way that is cut
// arrives when it is mended, unless the connection was given up meanwhile.
type Network struct {
	// Beat and Silence are those of the nodes: set before the first Join.
	Beat, Silence time.Duration

	mu     sync.Mutex
	nodes  map[string]*listener
	roads  map[road]*state
	mended chan struct{} // closed when something has changed
	open   map[*flow]struct{}
	last   int // number of a connection
	rest   sync.WaitGroup
}

// road is one way from a node to another one.
type road struct{ from, to string }

type state struct {
	cut   bool
	delay func() time.Duration
}

// New returns one in which all goes well, with beats every 20 ms and a silence of 100.
func New() *Network {
	return &Network{
		Beat: 20 * time.Millisecond, Silence: 100 * time.Millisecond,
		nodes: map[string]*listener{}, roads: map[road]*state{}, mended: make(chan struct{}), open: map[*flow]struct{}{},
	}
}

// Config is that of a node of the network, for link.New. An earlier process of the same node can
// be reached no more.
func (n *Network) Config(node, incarnation string) link.Config {
	l := &listener{node: node, conns: make(chan net.Conn), closed: make(chan struct{})}
	n.mu.Lock()
	n.nodes[node] = l
	n.mu.Unlock()
	return link.Config{
		Cluster: "test", Node: node, Incarnation: incarnation, Beat: n.Beat, Silence: n.Silence, Logger: slog.New(slog.DiscardHandler),
		Transport: link.Transport{
			Listener: l,
			Dial:     func(ctx context.Context, to, _ string) (net.Conn, error) { return n.dial(ctx, node, to) },
			Prove:    func(_ context.Context, c net.Conn) (string, error) { return c.(*end).from, nil },
		},
	}
}

// Meet has links know of the nodes of the network.
func (n *Network) Meet(all ...*link.Links) {
	nodes := map[string]link.Address{}
	n.mu.Lock()
	for name := range n.nodes {
		nodes[name] = link.Address{At: name}
	}
	n.mu.Unlock()
	for _, l := range all {
		l.SetNodes(nodes)
	}
}

// Cut has nothing arrive that one node sends to another, until it is mended: both ways need two
// cuts.
func (n *Network) Cut(from, to string, cut bool) {
	n.change(from, to, func(s *state) { s.cut = cut })
}

// CutAll cuts a node off all others, both ways.
func (n *Network) CutAll(node string, cut bool) {
	n.mu.Lock()
	var others []string
	for name := range n.nodes {
		if name != node {
			others = append(others, name)
		}
	}
	n.mu.Unlock()
	for _, other := range others {
		n.Cut(node, other, cut)
		n.Cut(other, node, cut)
	}
}

// Delay has what one node sends to another take as long as delay says, which must be safe for
// concurrent use; nil: no time.
func (n *Network) Delay(from, to string, delay func() time.Duration) {
	n.change(from, to, func(s *state) { s.delay = delay })
}

// Break ends the connections between two nodes: what was not answered has an unknown outcome.
// They connect again.
func (n *Network) Break(a, b string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for f := range n.open {
		if f.road == (road{a, b}) || f.road == (road{b, a}) {
			f.close()
		}
	}
}

// BreakOne ends one of the connections that a node has made to another one, counted from the
// oldest; false: there are not so many.
func (n *Network) BreakOne(from, to string, which int) bool {
	return n.one(from, to, which, func(c *connection) { c.close() })
}

// Stall has nothing arrive any more of what is sent over one of the connections that a node has made
// to another one, either way, and nobody hears of that; false: there are not so many.
func (n *Network) Stall(from, to string, which int) bool {
	return n.one(from, to, which, func(c *connection) { c.stalled = true })
}

func (n *Network) one(from, to string, which int, change func(*connection)) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []*connection
	for f := range n.open {
		if f.road == f.made && f.made == (road{from, to}) && !f.stalled {
			all = append(all, f.connection)
		}
	}
	slices.SortFunc(all, func(a, b *connection) int { return a.number - b.number })
	if which >= len(all) {
		return false
	}
	change(all[which])
	return true
}

func (n *Network) change(from, to string, change func(*state)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := road{from, to}
	if n.roads[r] == nil {
		n.roads[r] = &state{}
	}
	change(n.roads[r])
	n.tell()
}

// tell has those look again that wait. The caller holds mu.
func (n *Network) tell() {
	close(n.mended)
	n.mended = make(chan struct{})
}

func (n *Network) is(r road) (state, <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if s := n.roads[r]; s != nil {
		return *s, n.mended
	}
	return state{}, n.mended
}

// Wait mends everything, and returns when nothing of the network goes on: all links have to be
// closed.
func (n *Network) Wait() {
	n.mu.Lock()
	n.roads = map[road]*state{}
	for f := range n.open {
		f.stalled = false
	}
	n.tell()
	n.mu.Unlock()
	n.rest.Wait()
}

// dial connects: four pipes' ends, and a flow between them for each way.
func (n *Network) dial(ctx context.Context, from, to string) (net.Conn, error) {
	if !n.passes(ctx, road{from, to}) || !n.passes(ctx, road{to, from}) {
		return nil, ctx.Err()
	}
	n.mu.Lock()
	l := n.nodes[to]
	n.mu.Unlock()
	if l == nil {
		return nil, errors.New("found no such node")
	}
	near, a := net.Pipe()
	b, far := net.Pipe()
	closeBoth := sync.OnceFunc(func() { a.Close(); b.Close() })
	n.mu.Lock()
	n.last++
	c := &connection{made: road{from, to}, number: n.last, close: closeBoth}
	n.mu.Unlock()
	select {
	case l.conns <- &end{far, from}:
	case <-l.closed:
		closeBoth()
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		closeBoth()
		return nil, ctx.Err()
	}
	n.flow(&flow{n, c, road{from, to}, a, b})
	n.flow(&flow{n, c, road{to, from}, b, a})
	return near, nil
}

// passes waits until a road is not cut; false: ctx has ended.
func (n *Network) passes(ctx context.Context, r road) bool {
	for {
		s, mended := n.is(r)
		if !s.cut {
			return true
		}
		select {
		case <-mended:
		case <-ctx.Done():
			return false
		}
	}
}

// connection is what a node has made.
type connection struct {
	made    road
	number  int
	close   func()
	stalled bool // under mu
}

// flow carries what is sent one way of a connection.
type flow struct {
	*Network
	*connection
	road
	in, out net.Conn
}

// goes waits until the connection is not stalled.
func (f *flow) goes() {
	for {
		f.mu.Lock()
		stalled, mended := f.stalled, f.mended
		f.mu.Unlock()
		if !stalled {
			return
		}
		<-mended
	}
}

func (n *Network) flow(f *flow) {
	n.mu.Lock()
	n.open[f] = struct{}{}
	n.mu.Unlock()
	chunks := make(chan []byte, 64)
	n.rest.Go(func() {
		defer close(chunks)
		for {
			b := make([]byte, 64<<10)
			k, err := f.in.Read(b)
			if err != nil {
				return
			}
			chunks <- b[:k]
		}
	})
	n.rest.Go(func() {
		for b := range chunks {
			f.carry(b)
		}
		f.goes()
		n.passes(context.Background(), f.road) // the end of a connection is heard of over the same road
		f.close()
		n.mu.Lock()
		delete(n.open, f)
		n.mu.Unlock()
	})
}

// carry delivers some bytes.
func (f *flow) carry(b []byte) {
	if s, _ := f.is(f.road); s.delay != nil {
		time.Sleep(s.delay())
	}
	f.goes()
	f.passes(context.Background(), f.road)
	if _, err := f.out.Write(b); err != nil {
		f.close()
	}
}

// end is that of a connection which a node has accepted.
type end struct {
	net.Conn
	from string
}

// listener is a node's.
type listener struct {
	node   string
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, io.EOF
	}
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *listener) Addr() net.Addr { return address(l.node) }

type address string

func (a address) Network() string { return "linktest" }

func (a address) String() string { return string(a) }
