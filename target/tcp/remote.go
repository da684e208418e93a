package tcp

import (
	"golang.org/x/sys/unix"

	"lunar/internal/evloop"
)

// remoteIOV is how many pieces another thread sends at a time.
const remoteIOV = 128

// sendRemotely hands what was gathered to another thread.
func (m *mover) sendRemotely(loop *evloop.Loop, iov []unix.Iovec, bytes int) {
	a := &m.tx.remote
	a.mover, a.back, a.busy, a.room, a.bytes = m, m.loop, true, false, bytes
	a.sends++
	a.iov = append(a.iov[:0], iov...)
	loop.Post(a)
}

// Run implements evloop.Task, on the other thread.
func (a *remoteSend) Run() {
	a.sent, a.errno = evloop.Sendmsg(a.mover.fd, a.iov, 0)
	a.back.Post((*remoteResult)(a))
}

// remoteResult is a sendmsg that was made elsewhere, back on the connection's thread.
type remoteResult remoteSend

// Run implements evloop.Task.
func (r *remoteResult) Run() {
	m := r.mover
	r.busy = false
	clear(r.iov)
	if m.closed {
		m.release()
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
