package target

import (
	"sync"

	"lunar/internal/refusals"
	"lunar/target/login"
	"lunar/target/pdu"
)

// judge is admits for a session by what holds now; discovery sessions have no rule.
func (n *Session) judge(settings *Settings, config *TargetConfig) (*AccessRule, *login.Error) {
	switch {
	case n.target != nil:
		return config.admits(n.initiator, settings.Owners)
	case !settings.DiscoveryAuth.Accepts(n.initiator.Proof):
		return nil, login.Errorf(pdu.LoginAuthenticationFailure, "discovery asks for a user of auth group %q", settings.DiscoveryAuth.Group)
	}
	return nil, settings.Owners.refusalOfOthers(n.initiator)
}

// keeps reports whether the session would be admitted now.
func (s *Server) keeps(n *Session) bool {
	var config *TargetConfig
	if n.target != nil {
		config = n.target.config.Load()
	}
	_, fault := n.judge(s.settings.Load(), config)
	return fault == nil
}

// revokeAccess asks sessions to log out that would not be admitted any more.
func (s *Server) revokeAccess(sessions []*Session) (asked int) {
	asked = s.requestLogouts(sessions, errRevoked)
	for range asked {
		s.refusals.Add(refusals.Withdrawn)
	}
	return asked
}

// revokeLUNs takes their LUNs from sessions whose initiators are not admitted any more, and
// asks them to log out. When it returns, none of their commands begins: LogoutTime is for
// what is under way, and for their hosts to let go of the disks.
func (s *Server) revokeLUNs(sessions []*Session) (asked int) {
	asked = s.revokeAccess(sessions)
	var told sync.WaitGroup
	for _, n := range sessions {
		n.remap(nil, &told)
	}
	told.Wait()
	return asked
}

// trespass is the first reason against what a rule maps.
func (n *Session) trespass(rule *AccessRule) *login.Error {
	if rule == nil {
		return nil
	}
	for _, m := range rule.LUNs {
		if fault := n.trespasses(m.LU); fault != nil {
			return fault
		}
	}
	return nil
}
