package target

import (
	"net/netip"

	"lunar/internal/evloop"
	"lunar/target/login"
	"lunar/target/pdu"
)

// Holding is what a server holds on behalf of its peers.
type Holding struct {
	Buffers  int // buffers of all event threads' pools
	Sessions int
	Logins   int // connections that have not finished their login
}

// Holding counts it now, on the event threads.
func (s *Server) Holding() Holding {
	var h Holding
	for _, th := range s.threads {
		got := make(chan int)
		th.loop.Post(evloop.Func(func() { got <- th.loop.Pool().InUse() }))
		h.Buffers += <-got
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h.Sessions, h.Logins = len(s.mu.sessions), len(s.mu.loggingIn)
	return h
}

// Adopt serves the socket fd, which it takes over, as a session that has
// logged in already; the first command carries CmdSN 1. The channel is closed
// when nothing of the session is left.
func (s *Server) Adopt(fd int, targetName, initiatorName string, p login.Params) (ended <-chan struct{}, err error) {
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
	m := newSocketMover(fd, &p.ConnectionParams)
	n.core.post(func() { first.start(m, pdu.SN(1)) })
	return n.ended, nil
}
