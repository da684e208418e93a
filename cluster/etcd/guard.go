package etcd

import (
	"fmt"
	"net"
	"sync"
)

// guard tells who watches over this process (cluster/member) which leases it has: a
// connection for each, whose end ends the lease at once, which else would last its time,
// unless "keep" was said before. Without anybody who watches, leases are as good.
type guard struct {
	path  string
	mu    sync.Mutex
	conns map[int64]net.Conn
}

// hold tells of a lease, again if who watches has gone away meanwhile.
func (g *guard) hold(id int64) {
	if g.path == "" {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if c := g.conns[id]; c != nil {
		if _, err := c.Write([]byte("\n")); err == nil {
			return
		}
		c.Close()
		delete(g.conns, id)
	}
	c, err := net.Dial("unix", g.path)
	if err != nil {
		return
	}
	if _, err := fmt.Fprintf(c, "lease %d\n", id); err != nil {
		c.Close()
		return
	}
	if g.conns == nil {
		g.conns = map[int64]net.Conn{}
	}
	g.conns[id] = c
}

// release ends the watch over a lease, whose end is no death.
func (g *guard) release(id int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.part(id)
}

func (g *guard) part(id int64) {
	if c := g.conns[id]; c != nil {
		_, _ = c.Write([]byte("keep\n")) // who is gone watches no more
		c.Close()
		delete(g.conns, id)
	}
}

func (g *guard) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for id := range g.conns {
		g.part(id)
	}
	g.path = ""
}
