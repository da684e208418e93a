package target

import (
	"errors"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"lunar/internal/evloop"
	"lunar/target/login"
	"lunar/target/pdu"
)

// tcpMover is the Datamover of iSCSI over TCP (RFC 7143). It owns the socket
// and belongs to its connection's event thread. Receiving is in tcp_rx.go,
// sending in tcp_tx.go.
type tcpMover struct {
	fd   int
	loop *evloop.Loop
	room *Room
	r    Receiver

	headerDigest, dataDigest bool
	maxRecv                  int // longest data segment that we declared to take
	maxDataIn                int // longest data segment that the initiator takes

	rx rxState
	tx txState

	why    error // the end, once it is decided
	drain  evloop.Timer
	closed bool
}

// drainTime bounds how long a closing connection may take to accept what is
// queued for it.
const drainTime = 5 * time.Second

// newTCPMover takes over the socket of a connection whose login has ended.
func newTCPMover(conn *net.TCPConn, p *login.ConnectionParams) (*tcpMover, error) {
	fd, err := takeSocket(conn)
	if err != nil {
		return nil, err
	}
	return newSocketMover(fd, p), nil
}

// newSocketMover takes over a non-blocking stream socket.
func newSocketMover(fd int, p *login.ConnectionParams) *tcpMover {
	m := &tcpMover{
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

// takeSocket gets the descriptor out of the Go runtime's poller.
func takeSocket(conn *net.TCPConn) (int, error) {
	defer conn.Close()
	raw, err := conn.SyscallConn()
	if err != nil {
		return -1, err
	}
	fd, dupErr := -1, error(nil)
	if err := raw.Control(func(s uintptr) { fd, dupErr = unix.FcntlInt(s, unix.F_DUPFD_CLOEXEC, 0) }); err != nil {
		return -1, err
	}
	if dupErr != nil {
		return -1, dupErr
	}
	if err := errors.Join(evloop.SetNonblock(fd), evloop.SetNoDelay(fd)); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// Attach implements Datamover.
func (m *tcpMover) Attach(r Receiver, loop *evloop.Loop) error {
	m.r, m.loop, m.room = r, loop, r.Room()
	return loop.Register(m.fd, unix.EPOLLIN|unix.EPOLLOUT|unix.EPOLLRDHUP|unix.EPOLLET, m)
}

// Detach implements Datamover.
func (m *tcpMover) Detach() bool {
	if m.closed || m.why != nil || m.tx.pending() || m.tx.scheduled || m.rx.busy() || m.rx.due {
		return false
	}
	m.loop.Disarm(&m.tx.copying)
	return m.loop.Unregister(m.fd) == nil
}

// MaxDataIn implements Datamover.
func (m *tcpMover) MaxDataIn() int { return m.maxDataIn }

// SetMaxDataIn follows a new declaration of the initiator.
func (m *tcpMover) SetMaxDataIn(n int) { m.maxDataIn = n }

// Ready implements evloop.Poller.
func (m *tcpMover) Ready(events uint32) {
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

// Close implements Datamover.
func (m *tcpMover) Close(why error, drain bool) {
	if m.closed {
		return
	}
	if m.why == nil {
		m.why = why
	}
	if !drain || m.r == nil || !m.tx.pending() {
		m.end()
		return
	}
	m.loop.Arm(&m.drain, drainTime)
}

// end closes the socket and tells the receiver.
func (m *tcpMover) end() {
	if m.closed {
		return
	}
	m.closed = true
	if m.r == nil { // never attached
		unix.Close(m.fd)
		return
	}
	m.loop.Disarm(&m.drain)
	m.loop.Disarm(&m.tx.copying)
	m.loop.Unregister(m.fd)
	if !m.tx.away.busy { // else it follows when that is back
		m.finish()
	}
}

// finish gives up what a closed transport still has.
func (m *tcpMover) finish() {
	unix.Close(m.fd)
	m.tx.drop()
	m.rx.drop()
	m.r.Closed(m.why)
}

// wireLength is the length of a PDU with its digests and padding.
func (m *tcpMover) wireLength(bhs *pdu.BHS) int {
	return bhs.WireLength(m.headerDigest, m.dataDigest)
}
