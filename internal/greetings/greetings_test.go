package greetings

import (
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"lunar/internal/places"
)

// TestGreetings: where strangers have all places, who is known has one at once, one more stranger of
// their addresses has that of another one of it, and who is from elsewhere has one a moment later.
func TestGreetings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(64, func(c net.Conn) { c.Close() })
		address := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, byte(i), 1}) }
		begin := func(class places.Class, from netip.Addr) (net.Conn, bool) {
			c, other := net.Pipe()
			t.Cleanup(func() { c.Close(); other.Close() })
			return c, g.Begin(c, class, from)
		}
		closed := func(c net.Conn) bool { return c.SetDeadline(time.Now()) != nil }
		var all []net.Conn
		for i := range g.bounds.Places {
			c, ok := begin(places.Stranger, address(i/g.bounds.PerHolder))
			if all = append(all, c); !ok {
				t.Fatalf("found no place for connection %d", i)
			}
		}
		if _, ok := begin(places.Stranger, address(100)); ok {
			t.Error("a stranger has the place of one who has just come, and has not more than a share")
		}
		if _, ok := begin(places.Stranger, address(0)); !ok || !closed(all[0]) || closed(all[1]) {
			t.Errorf("a stranger of an address that has its share: found %v, and its first one closed: %v", ok, closed(all[0]))
		}
		known, ok := begin(places.Known, address(101))
		if !ok {
			t.Error("who is known has no place")
		}
		g.Proven(known)
		time.Sleep(Patience)
		if _, ok := begin(places.Stranger, address(100)); !ok || closed(known) {
			t.Errorf("a stranger, a moment later: found %v, and that of who is known closed: %v", ok, closed(known))
		}
		g.End(known)
		if _, held := g.table.Holder(known); held {
			t.Error("a place is not given back")
		}
	})
}
