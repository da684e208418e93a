package target

import (
	"net/netip"
	"slices"
	"time"

	"lunar/target/login"
	"lunar/target/pdu"
)

// requestLogouts asks the initiators of sessions to log out (RFC 7143 section 11.9.1,
// event 1) and drops those that have not within LogoutTime, of which they are told
// (event 3). It returns at once, with how many had not been asked before.
func (s *Server) requestLogouts(sessions []*Session, why error) (asked int) {
	within := s.settings.Load().LogoutTime
	for _, n := range sessions {
		if n.logoutRequested.Swap(true) {
			continue
		}
		asked++
		n.named(s.log, n.remote).Info("initiator asked to log out", "reason", why, "within", within)
		n.state.post(func() { n.state.requestLogout(within, why) })
		s.running.Go(func() {
			late := time.NewTimer(within)
			defer late.Stop()
			select {
			case <-n.ended:
			case <-late.C:
				n.state.post(func() { n.state.drop(why) })
			}
		})
	}
	return asked
}

// Kick asks the initiators of the sessions that match to log out, and
// disconnects who does not. They may log in again. It returns how many are to
// end.
func (s *Server) Kick(match func(SessionStats) bool) int {
	return s.requestLogouts(slices.DeleteFunc(s.sessions(), func(n *Session) bool { return !match(n.stats()) }), errKicked)
}

// Drain keeps initiators away from a portal, or from all of a portal group.
type Drain struct {
	Tag      uint16         // of the portal group
	Portal   netip.AddrPort // that of the sessions' local addresses; the zero value is all of the group
	Redirect string         // host:port that logins are sent to; empty: they are told to try again later
}

func (d *Drain) covers(tag uint16, local netip.AddrPort) bool {
	return d.Tag == tag && (!d.Portal.IsValid() || d.Portal == local)
}

// cameBy reports whether a connection of the session came in by a portal that matches.
func (n *Session) cameBy(match func(tag uint16, local netip.AddrPort) bool) bool {
	return slices.ContainsFunc(*n.state.shown.Load(), func(c shownConnection) bool { return !c.Lost && match(n.portalGroup, c.Local) })
}

func (d *Drain) same(o Drain) bool { return d.Tag == o.Tag && d.Portal == o.Portal }

// Drain refuses or redirects logins from now on, in place of what the same portal
// was told before, and asks the initiators of normal sessions to log out. It
// returns how many are to end.
func (s *Server) Drain(d Drain) int {
	s.Undrain(d)
	s.mu.Lock()
	s.mu.drains = append(s.mu.drains, d)
	s.mu.Unlock()
	return s.requestLogouts(slices.DeleteFunc(s.sessions(), func(n *Session) bool {
		return n.target == nil || !n.cameBy(d.covers)
	}), errDiverted)
}

// Undrain ends what Drain began, and reports whether there was anything.
func (s *Server) Undrain(d Drain) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.mu.drains)
	s.mu.drains = slices.DeleteFunc(s.mu.drains, d.same)
	return len(s.mu.drains) < before
}

// Drains returns what is being drained.
func (s *Server) Drains() []Drain {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.mu.drains)
}

// diversion returns why a login to a target through a portal is not served here,
// or nil (RFC 7143 section 11.13.5). What is said of the target comes first, for
// it holds for all its portals. The caller holds mu.
func (s *Server) diversion(t *TargetConfig, tag uint16, local netip.AddrPort) *login.Error {
	switch {
	case t.Moved != "":
		return redirection(pdu.LoginTargetMovedPermanently, t.Moved)
	case t.Redirect != "":
		return redirection(pdu.LoginTargetMovedTemporarily, t.Redirect)
	}
	return s.portalDiversion(tag, local)
}

// portalDiversion is diversion for all targets of a portal. The caller holds mu.
func (s *Server) portalDiversion(tag uint16, local netip.AddrPort) *login.Error {
	for _, d := range s.mu.drains {
		switch {
		case !d.covers(tag, local):
		case d.Redirect != "":
			return redirection(pdu.LoginTargetMovedTemporarily, d.Redirect)
		default:
			return login.Errorf(pdu.LoginServiceUnavailable, "the portal is being drained")
		}
	}
	if g := s.mu.groups[tag]; g != nil && g.Redirect != "" {
		return redirection(pdu.LoginTargetMovedTemporarily, g.Redirect)
	}
	return nil
}

// redirection sends an initiator to an address, which has no portal group tag
// then (RFC 7143 section 13.8).
func redirection(status pdu.LoginStatus, to string) *login.Error {
	fault := login.Errorf(status, "redirected to %s", to)
	fault.TargetAddress = to
	return fault
}
