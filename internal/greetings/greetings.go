// Package greetings has the places of connections that have not said yet whose they are, so that
// those that say nothing keep nobody out.
package greetings

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"lunar/internal/places"
)

// Greetings are the connections of one listener. Where all places are taken, those of a stronger
// class get the ones of strangers, and strangers those of who has more than a share, or has been
// silent for longer than it takes.
type Greetings struct {
	bounds places.Bounds
	hangUp func(net.Conn)
	mu     sync.Mutex
	table  places.Table[net.Conn]
}

// Patience is how long a place is anybody's for certain who has no more than a share.
const Patience = time.Second

// New has a number of places, of which an address may keep an eighth, and a network of them half.
// Who loses a place is hung up on.
func New(all int, hangUp func(net.Conn)) *Greetings {
	return &Greetings{bounds: places.Bounds{Places: all, PerHolder: all / 8, PerNetwork: all / 2, Patience: Patience}, hangUp: hangUp}
}

// Begin gives a connection a place; false: there is none. A connection without an address is from
// the zero Addr.
func (g *Greetings) Begin(c net.Conn, class places.Class, from netip.Addr) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	lost, displaced, ok := g.table.Take(c, places.Of(class, from), g.bounds, 0, time.Now())
	if displaced {
		g.hangUp(lost)
	}
	return ok
}

// Proven notes that whoever is at the other end may come in: others lose their places before.
func (g *Greetings) Proven(c net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.table.Progress(c, true)
}

// End gives a place back.
func (g *Greetings) End(c net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.table.Release(c)
}
