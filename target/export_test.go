package target

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"lunar/internal/eventually"
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

// delayedLogin is a login whose last response waits.
type delayedLogin struct {
	LoginTransport
	delay func()
}

func (d *delayedLogin) Send(bhs *pdu.BHS, text []byte) error {
	if rsp := (*pdu.LoginResponse)(bhs); rsp.Transit() && rsp.NSG() == pdu.StageFullFeaturePhase {
		d.delay()
	}
	return d.LoginTransport.Send(bhs, text)
}

// LoginDelayed serves a connection like one that came in by portal group 1. delay is
// called when all is decided and the last response is about to leave.
func (s *Server) LoginDelayed(t LoginTransport, delay func()) {
	s.Login(&delayedLogin{t, delay}, 1)
}

// Adopt serves the transports, which it takes over, as the connections, with CIDs from 0
// on, of a session that has logged in already; the first command carries CmdSN 1. The
// channel is closed when nothing of the session is left.
func (s *Server) Adopt(movers []Datamover, targetName, initiatorName string, p login.Params) (ended <-chan struct{}, err error) {
	n := &Session{
		node: s, target: s.target(targetName), portalGroup: 1, params: p,
		initiator: Initiator{Name: initiatorName, Addr: netip.IPv6Loopback()}, origin: nowhere, settings: s.settings.Load(),
	}
	n.admittedBy = n.target.config.Load()
	rule := n.admittedBy.ruleFor(n.initiator)
	first := n.join(rule, s.homeFor(rule, n.origin), 1, 0)
	if fault := s.admit(n, 0); fault != nil {
		return nil, fault
	}
	n.state.post(func() {
		first.start(movers[0], pdu.SN(1))
		for cid, m := range movers[1:] {
			o := newConnection(n.state, uint16(cid+1), n.local, n.remote)
			n.state.admit(o, func(error) { o.start(m, pdu.SN(1)) })
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

// AwaitDirectory waits until the answers to SendTargets that were asked for are made.
func (s *Server) AwaitDirectory(t testing.TB) {
	eventually.Finds(t, "the directory at work", false, func() bool {
		s.directory.Lock()
		defer s.directory.Unlock()
		return s.directory.working
	})
}

// AttemptWaits is how long a connection from an address has to wait for its login.
func (s *Server) AttemptWaits(from netip.Addr) time.Duration {
	conn := &delayedLogin{}
	wait, _ := s.beginLogin(conn, from)
	s.endLogin(conn)
	return wait
}

// Remotes counts the nexuses of sessions at other servers.
func (s *Server) Remotes() int { return len(s.remotes.of(func(*remoteNexus) bool { return true })) }

// RemoteTasks counts the commands that other servers relay, on the event threads.
func (s *Server) RemoteTasks() (all int) {
	for _, n := range s.remotes.of(func(*remoteNexus) bool { return true }) {
		got := make(chan int)
		n.post(func(n *remoteNexus) { got <- len(n.tasks) })
		all += <-got
	}
	return all
}

// Inspect has all event threads look at their sessions.
func (s *Server) Inspect() {
	for _, th := range s.threads {
		done := make(chan struct{})
		th.loop.Post(evloop.Func(func() { th.inspect(); close(done) }))
		<-done
	}
}
