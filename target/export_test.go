package target

import (
	"net"
	"net/netip"
	"slices"
	"time"

	"lunar/internal/evloop"
	"lunar/target/login"
	"lunar/target/pdu"
	"lunar/target/scsi"
)

// Holding is what a server holds on behalf of its peers.
type Holding struct {
	Buffers  int // buffers of all event threads' pools
	Sessions int
	Logins   int // connections that have not finished their login
	Unheard  int // commands in the background
}

// Holding counts it now, on the event threads.
func (s *Server) Holding() Holding {
	var h Holding
	for _, th := range s.threads {
		got := make(chan [2]int)
		th.loop.Post(evloop.Func(func() { got <- [2]int{th.loop.Pool().InUse(), len(th.backgrounds)} }))
		n := <-got
		h.Buffers, h.Unheard = h.Buffers+n[0], h.Unheard+n[1]
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h.Sessions, h.Logins = len(s.mu.sessions), s.mu.admission.logins.Len()
	return h
}

// Unreserved is how many bytes of buffers are left of those that the sessions of the first
// event thread share.
func (s *Server) Unreserved() int {
	th, got := s.threads[0], make(chan int)
	th.loop.Post(evloop.Func(func() { got <- th.loop.Pool().Unreserved() }))
	return <-got
}

// heldLogin is a login whose last response waits.
type heldLogin struct {
	LoginTransport
	hold func()
}

func (h *heldLogin) Send(bhs *pdu.BHS, text []byte) error {
	if rsp := (*pdu.LoginResponse)(bhs); rsp.Transit() && rsp.NSG() == pdu.StageFullFeaturePhase {
		h.hold()
	}
	return h.LoginTransport.Send(bhs, text)
}

// LoginHeld serves conn like one that came in by portal group 1. hold is called when
// all is decided and the last response is about to leave.
func (s *Server) LoginHeld(conn *net.TCPConn, hold func()) {
	s.Login(&heldLogin{&tcpLogin{conn: conn}, hold}, 1)
}

// Adopt serves the sockets, which it takes over, as the connections, with CIDs from 0
// on, of a session that has logged in already; the first command carries CmdSN 1. The
// channel is closed when nothing of the session is left.
func (s *Server) Adopt(fds []int, targetName, initiatorName string, p login.Params) (ended <-chan struct{}, err error) {
	n := &Session{
		server: s, target: s.target(targetName), portalGroup: 1, params: p,
		initiator: Initiator{Name: initiatorName, Addr: netip.IPv6Loopback()}, origin: nowhere, settings: s.settings.Load(),
	}
	n.admittedBy = n.target.config.Load()
	rule := n.admittedBy.ruleFor(n.initiator)
	first := n.join(rule, s.homeFor(rule, n.origin), 1, 0)
	if fault := s.admit(n, 0); fault != nil {
		return nil, fault
	}
	n.core.post(func() {
		first.start(newSocketMover(fds[0], &p.ConnectionParams), pdu.SN(1))
		for cid, fd := range fds[1:] {
			o := newConnection(n.core, uint16(cid+1), n.local, n.remote)
			n.core.admit(o, func(error) { o.start(newSocketMover(fd, &p.ConnectionParams), pdu.SN(1)) })
		}
	})
	return n.ended, nil
}

// Group returns the numbers of a logical unit's event threads.
func (s *Server) Group(lu *scsi.LogicalUnit) (numbers []int) {
	for _, th := range s.groupOf(lu) {
		numbers = append(numbers, slices.Index(s.threads, th))
	}
	return numbers
}

// MostWork is the most control work that an event thread has done in one pass since it
// was asked last, and PassWork the bound on it but for the last request of a pass.
func (s *Server) MostWork() (most int) {
	for _, th := range s.threads {
		got := make(chan int)
		th.loop.Post(evloop.Func(func() { got <- th.shares.most; th.shares.most = 0 }))
		most = max(most, <-got)
	}
	return most
}

const PassWork = passWork

// Guessed counts a wrong proof of a user and returns how long its answer has to wait.
func (s *Server) Guessed(from netip.Addr, user login.Proof, now time.Time) time.Duration {
	return s.guessed(from, user, now)
}

// Stand lets the first event thread stand still, as when the whole machine does.
func (s *Server) Stand(d time.Duration) {
	stood := make(chan struct{})
	s.threads[0].loop.Post(evloop.Func(func() { time.Sleep(d); close(stood) }))
	<-stood
}

// Masks are the ways in which targets ask for CHAP.
func (s *Server) Masks() []*login.Auth { return s.masks() }
