package target

import (
	"slices"
	"time"

	"lunar/internal/refusals"
	"lunar/target/login"
	"lunar/target/pdu"
	"lunar/target/scsi"
)

// reinstateTime bounds how long a login waits for the session that it
// replaces: what the backing store is doing for it has to end first.
const reinstateTime = 10 * time.Second

// leaveTime is how long a login waits for the end of a session of another user, who may
// just have logged out.
const leaveTime = time.Second

// admit makes the session of a login that has succeeded. It ends and replaces
// a session of the same initiator port with the same target portal group
// (session reinstatement, RFC 7143 section 6.3.5), if that is the same user's.
func (s *Server) admit(session *Session, requested uint16) *login.Error {
	begun := time.Now()
	for {
		old, err := s.register(session, requested)
		if old == nil {
			return err
		}
		within := leaveTime
		if err == nil {
			within = reinstateTime
			defer s.releasePassed(session)
			old.close(errReinstated)
		}
		select {
		case <-old.ended:
			continue
		case <-time.After(time.Until(begun.Add(within))):
		}
		if err == nil {
			return login.Errorf(pdu.LoginServiceUnavailable, "the session that this login replaces has not ended in %v", reinstateTime)
		}
		s.refusals.Add(refusals.LoginPort)
		return err
	}
}

// releasePassed gives back the place that was passed to a session which was not
// registered after all.
func (s *Server) releasePassed(n *Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.sessions[n.tsih] != n {
		s.releasePlace(n)
	}
}

// register adds the session, or returns the one that must end first; with an error it is
// one that the session does not replace.
func (s *Server) register(n *Session, requested uint16) (old *Session, err *login.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closing {
		return nil, login.Errorf(pdu.LoginServiceUnavailable, "the server is shutting down")
	}
	if err := s.stillGranted(n); err != nil {
		return nil, err
	}
	if requested != 0 {
		o := s.mu.sessions[requested]
		if err := n.mayContinue(o); err != nil {
			return nil, err
		}
		if o != nil && o.sameNexus(n) { // what the session has agreed is not negotiated again
			n.params.SessionParams = o.params.SessionParams
		}
	}
	for _, o := range s.mu.sessions {
		if !o.sameNexus(n) {
			continue
		}
		if !o.sameUser(n) && s.keeps(o) {
			return o, login.Errorf(pdu.LoginAuthorizationFailure, "the initiator port has a session of another user (%q), which only that user may replace: give the name to one of them by initiators of chap", o.initiator.Proof)
		}
		n.replaces = o.tsih
		s.passPlace(o, n)
		return o, nil
	}
	if requested != 0 && n.replaces != requested {
		return nil, login.Errorf(pdu.LoginSessionDoesNotExist, "session %d has ended", requested)
	}
	if err := s.takePlace(n); err != nil {
		return nil, err
	}
	n.tsih = s.newTSIH(requested)
	s.mu.sessions[n.tsih] = n
	return nil, nil
}

// mayContinue judges a login that names the TSIH of a session with MaxConnections
// 1: it may only replace that session's connection.
func (n *Session) mayContinue(o *Session) *login.Error {
	switch {
	case n.replaces != 0: // the second round: the old one has ended
		return nil
	case o == nil || !o.sameNexus(n) || !o.sameUser(n):
		return login.Errorf(pdu.LoginSessionDoesNotExist, "no such session of this initiator port")
	case o.state.leadingCID != n.state.leadingCID:
		return login.Errorf(pdu.LoginTooManyConnections, "a second connection (CID %d), MaxConnections is 1", n.state.leadingCID)
	}
	return nil
}

// newTSIH returns a session handle that is not in use: the one asked for, when
// a connection is reinstated.
func (s *Server) newTSIH(requested uint16) uint16 {
	if requested != 0 {
		return requested
	}
	for {
		s.mu.lastTSIH++
		if s.mu.lastTSIH != 0 && s.mu.sessions[s.mu.lastTSIH] == nil {
			return s.mu.lastTSIH
		}
	}
}

// sameUser reports whether both sessions of a nexus are of one who has proven to be the
// same, or are both of somebody who need not prove anything.
func (o *Session) sameUser(n *Session) bool { return o.standing() == n.standing() }

// standing is what the session's proof is worth by what holds now: none where none is
// asked for any more, so that who is admitted without one finds his own sessions.
func (o *Session) standing() login.Proof {
	if rule := o.target.config.Load().ruleFor(o.initiator); rule != nil && len(rule.Auth.Incoming) == 0 {
		return login.Proof{}
	}
	return o.initiator.Proof
}

// sessionEnded implements node: it removes a session of which nothing runs any more.
func (s *Server) sessionEnded(n *Session) {
	n.endedOnce.Do(func() {
		s.mu.Lock()
		delete(s.mu.sessions, n.tsih)
		s.releasePlace(n)
		n.addTraffic(s.mu.past)
		s.tellSeenLess()
		s.mu.Unlock()
		close(n.ended)
	})
}

// close ends the session from any goroutine.
func (n *Session) close(why error) {
	n.state.post(func() { n.state.closeAll(why) })
}

func (s *Server) sessions() []*Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*Session, 0, len(s.mu.sessions))
	for _, n := range s.mu.sessions {
		out = append(out, n)
	}
	return out
}

// sharing returns the other sessions that see one of the units.
func (s *Server) sharing(self *Session, units []*scsi.LogicalUnit) []*Session {
	var out []*Session
	for _, n := range s.sessions() {
		if n != self && slices.ContainsFunc(units, n.sees) {
			out = append(out, n)
		}
	}
	return out
}

// closeSessions ends all sessions of a target, each after what is queued for
// it has been sent.
func (s *Server) closeSessions(t *Target, why error) {
	for _, n := range s.sessions() {
		if n.target == t {
			n.state.post(func() { n.state.drainAll(why) })
		}
	}
}

// seesLess implements node.
func (s *Server) seesLess(n *Session, next *view, gone []*lun) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range gone {
		s.mu.past[l.nexus.LU] = s.mu.past[l.nexus.LU].plus(l.traffic.sum())
	}
	n.view.Store(next)
	s.tellSeenLess()
}

// tellSeenLess wakes those who wait for sessions to see less. The caller holds
// mu.
func (s *Server) tellSeenLess() {
	close(s.mu.seenLess)
	s.mu.seenLess = make(chan struct{})
}
