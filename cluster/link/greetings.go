package link

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"lunar/cluster/link/wire"
	"lunar/internal/places"
)

// greetings are the connections that have not said yet whose they are. Where all places are taken,
// those from nodes' addresses get the ones of strangers, and strangers those of who has more than a
// share, or has been silent for longer than it takes.
type greetings struct {
	mu    sync.Mutex
	table places.Table[net.Conn]
}

// greeting bounds them.
var greeting = places.Bounds{Places: 64, PerHolder: 8, PerNetwork: 32, Patience: time.Second}

// begin gives a connection a place; false: there is none. A connection without an address is from
// the zero Addr.
func (g *greetings) begin(c net.Conn, class places.Class, from netip.Addr) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	lost, displaced, ok := g.table.Take(c, places.Of(class, from), greeting, 0, time.Now())
	if displaced {
		wire.HangUp(lost)
	}
	return ok
}

// proven notes that a node has made a connection: others lose their places before it does.
func (g *greetings) proven(c net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.table.Progress(c, true)
}

func (g *greetings) end(c net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.table.Release(c)
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
