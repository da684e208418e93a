package tcp

import (
	"golang.org/x/sys/unix"

	"lunar/internal/evloop"
	"lunar/target/login"
)

// newMover takes over a non-blocking stream socket.
func newMover(all scratches, fd int, p *login.ConnectionParams) *mover {
	m := &mover{
		all:          all,
		fd:           fd,
		headerDigest: p.HeaderDigest,
		dataDigest:   p.DataDigest,
		maxRecv:      int(p.TargetMaxRecvDataSegmentLength),
		maxDataIn:    int(p.InitiatorMaxRecvDataSegmentLength),
	}
	m.rx.again, m.rx.reach = evloop.Func(m.receiveAgain), readLeast
	m.tx.flush = evloop.Func(m.flushAtEnd)
	m.drain.Fire = func() { m.end() }
	m.tx.copying.Fire = m.copyLoans
	return m
}

// Ready implements evloop.Poller.
func (m *mover) Ready(events uint32) {
	defer m.r.Contain()
	if events&unix.EPOLLOUT != 0 {
		m.writable()
	}
	if events&^(unix.EPOLLOUT|unix.EPOLLIN) != 0 {
		m.rx.ending = true
	}
	if events&^unix.EPOLLOUT != 0 {
		m.receive()
	}
}
