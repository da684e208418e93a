package target

import (
	"slices"
	"time"

	"lunar/target/login"
	"lunar/target/pdu"
)

// sharedSession returns the session of the TSIH if further connections may join it
// (MaxConnections is more than 1), else nil.
func (s *Server) sharedSession(tsih uint16, isid pdu.ISID) *Session {
	if tsih == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.mu.sessions[tsih]; n != nil && n.isid == isid && n.state.shared {
		return n
	}
	return nil
}

// join makes the connection one of a session (RFC 7143 section 6.3.2). n is the
// session that it would have begun: what must be the same of both is compared.
func (p *loginPhase) join(n *Session, rule *AccessRule, cid uint16) error {
	s := p.joins
	if !s.sameNexus(n) || !s.sameUser(n) || n.assisted {
		return login.Errorf(pdu.LoginSessionDoesNotExist, "no such session of this initiator port")
	}
	if its := n.admittedBy.ruleFor(s.initiator); its == nil || !slices.Equal(its.LUNs, rule.LUNs) {
		return login.Errorf(pdu.LoginAuthorizationFailure, "the session has other LUNs than are for connections from %v", n.initiator.Addr)
	}
	if fault := p.server.mayJoin(n); fault != nil {
		return fault
	}
	c := newConnection(s.state, cid, n.local, n.remote)
	admitted := make(chan error, 1)
	c.post(func() { c.admit(c, func(err error) { admitted <- err }) })
	late := time.NewTimer(reinstateTime)
	defer late.Stop()
	select {
	case err := <-admitted:
		if err != nil {
			return err
		}
	case <-s.ended:
		return login.Errorf(pdu.LoginSessionDoesNotExist, "the session has ended")
	case <-late.C:
		c.post(c.cancel)
		return login.Errorf(pdu.LoginServiceUnavailable, "the connection that this login replaces has not ended in %v", reinstateTime)
	}
	if fault := p.server.mayJoin(n); fault != nil { // whoever changed something since has not seen the connection
		c.post(c.cancel)
		return fault
	}
	p.session, p.conn = s, c
	return nil
}

// mayJoin is stillGranted for what would have begun a session of its own.
func (s *Server) mayJoin(n *Session) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if fault := s.stillGranted(n); fault != nil {
		return fault
	}
	return nil
}
