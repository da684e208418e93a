package target

import (
	"syscall"

	"golang.org/x/sys/unix"

	"lunar/internal/evloop"
)

// awayIOV is how many pieces are sent away from home at a time.
const awayIOV = 128

// away is a sendmsg that a thread of another NUMA node makes for the
// connection, because most of the data lie in that node's memory: the copy into
// the socket is then a local one. Only the system call is made there; the queue,
// the sequence numbers and the result stay with the connection's own thread,
// which sends nothing meanwhile, so that the order is kept.
//
// INVARIANT: while busy, no queued PDU changes and the socket stays open.
type away struct {
	mover *tcpMover
	back  *evloop.Loop
	iov   []unix.Iovec
	bytes int
	busy  bool
	room  bool   // while busy: the socket has become writable, which the sendmsg may have come too early for
	sends uint64 // so far

	sent  int // of the system call
	errno unix.Errno
}

// sendAway hands what was gathered to another thread.
func (m *tcpMover) sendAway(loop *evloop.Loop, iov []unix.Iovec, bytes int) {
	a := &m.tx.away
	a.mover, a.back, a.busy, a.room, a.bytes = m, m.loop, true, false, bytes
	a.sends++
	a.iov = append(a.iov[:0], iov...)
	loop.Post(a)
}

// Run implements evloop.Task, on the other thread.
func (a *away) Run() {
	a.sent, a.errno = evloop.Sendmsg(a.mover.fd, a.iov, 0)
	a.back.Post((*returned)(a))
}

// returned is a sendmsg that was made elsewhere, back on the connection's thread.
type returned away

// Run implements evloop.Task.
func (r *returned) Run() {
	m := r.mover
	r.busy = false
	clear(r.iov)
	if m.closed {
		m.finish()
		return
	}
	defer m.r.Contain()
	if err := m.sent(r.sent, r.bytes, r.errno); err != nil {
		m.Close(err, false)
		return
	}
	if r.room && m.tx.blocked {
		m.tx.blocked = false
	}
	m.scheduleFlush()
}

// writable goes on after the socket has refused data. The event comes only once,
// also when it overtakes the result of a sendmsg that was made elsewhere.
func (m *tcpMover) writable() {
	m.tx.away.room = true
	if m.tx.blocked {
		m.tx.blocked = false
		m.scheduleFlush()
	}
}

// sent takes the result of a sendmsg of bytes.
func (m *tcpMover) sent(n, bytes int, errno unix.Errno) error {
	if errno == unix.EAGAIN {
		m.block()
		return nil
	}
	if errno != 0 {
		return syscall.Errno(errno)
	}
	m.advance(n)
	if n < bytes {
		m.block()
	}
	return nil
}

// Sender implements Receiver. A connection keeps to one thread of each node.
func (c *Connection) Sender(node int) *evloop.Loop {
	if node == c.thread.loop.Node() {
		return nil
	}
	return c.session.server.loopOf(node, int(c.session.tsih))
}

// loopOf returns the loop of one of a node's event threads, nil if it has none.
func (s *Server) loopOf(node, choice int) *evloop.Loop {
	n := 0
	for _, th := range s.threads {
		if th.loop.Node() == node {
			n++
		}
	}
	for _, th := range s.threads {
		if th.loop.Node() != node {
			continue
		}
		if choice%n == 0 {
			return th.loop
		}
		choice--
	}
	return nil
}
