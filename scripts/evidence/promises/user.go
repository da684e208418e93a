package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"lunar/internal/initiator"
	"lunar/scripts/evidence/site"
)

const (
	volumeBytes = 64 << 20
	blockBytes  = 4096
	sessions    = 2 // of an initiator with a node
	depth       = 16
	silence     = 2 * time.Second // after which a session is given up
	prefix      = "iqn.2026-11.example.lunar:"
)

// user is an initiator with sessions with all nodes. It reads at those where it asks for
// something, as much as it is let.
type user struct {
	account
	name  string
	asks  []atomic.Bool // by node
	ended atomic.Bool
	group sync.WaitGroup

	mu    sync.Mutex
	wrong string // the first answer that must not be
}

// begin has an initiator come.
func begin(s *site.Site, number int, name string) *user {
	u := &user{account: account{began: time.Now()}, name: prefix + name, asks: make([]atomic.Bool, len(s.Nodes))}
	for node, n := range s.Nodes {
		for i := range sessions {
			isid := [6]byte{0x80, 0, byte(number), byte(node), byte(i), 1}
			u.group.Go(func() { u.use(node, n.Portal, isid) })
		}
	}
	return u
}

// ask has the initiator want all that it gets at some nodes, and nothing at others.
func (u *user) ask(nodes ...int) {
	for i := range u.asks {
		u.asks[i].Store(false)
	}
	for _, i := range nodes {
		u.asks[i].Store(true)
	}
}

func (u *user) end() {
	u.ended.Store(true)
	u.group.Wait()
}

// use keeps a session with a node for as long as that goes well, and makes another one.
func (u *user) use(node int, portal string, isid [6]byte) {
	for !u.ended.Load() {
		socket, err := net.DialTimeout("tcp", portal, silence)
		if err != nil {
			time.Sleep(slot)
			continue
		}
		c := initiator.NewConn(socket)
		c.Timeout = silence
		if c.Login(initiator.Options{Target: site.Target, Initiator: u.name, ISID: isid}) == nil {
			u.read(node, c)
		}
		c.Close()
	}
}

// read has commands under way while the initiator asks for something at the node.
func (u *user) read(node int, c *initiator.Conn) {
	var under []*initiator.Task
	for !u.ended.Load() {
		for len(under) < depth && u.asks[node].Load() {
			t, err := c.Start(random())
			if err != nil {
				return
			}
			under = append(under, t)
		}
		if len(under) == 0 {
			if _, err := c.Step(time.Millisecond); err != nil && !errors.Is(err, initiator.ErrTimeout) { // it answers pings
				return
			}
			continue
		}
		r, err := c.Wait(under[0])
		if err != nil {
			return
		}
		under = under[1:]
		u.judge(r)
	}
}

func random() initiator.Command {
	cdb := make([]byte, 16)
	cdb[0] = 0x88 // READ (16)
	binary.BigEndian.PutUint64(cdb[2:], rand.Uint64N(volumeBytes/blockBytes)*(blockBytes/512))
	binary.BigEndian.PutUint32(cdb[10:], blockBytes/512)
	return initiator.Command{CDB: cdb, InLen: blockBytes}
}

// judge counts a command that went well. Others may be refused for a moment: the owner or the
// node is another one.
func (u *user) judge(r *initiator.Result) {
	const busy, full, notReady, unitAttention = 0x08, 0x28, 0x2, 0x6
	key, asc, ascq := r.SenseKey()
	switch {
	case r.Response == 0 && r.Status == 0:
		u.answered()
	case r.Status == busy, r.Status == full, key == unitAttention, key == notReady && asc == 0x04:
	default:
		u.mu.Lock()
		defer u.mu.Unlock()
		if u.wrong == "" {
			u.wrong = fmt.Sprintf("%s: response %d, status %#02x, sense %x/%02x/%02x", u.name, r.Response, r.Status, key, asc, ascq)
		}
	}
}

// failed is what must not have happened; empty: nothing.
func (u *user) failed() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.wrong
}
