package target

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"lunar/target/login"
	"lunar/target/pdu"
)

// addUnits gives the logical units of a target that were not added before one
// event thread each.
func (s *Server) addUnits(c *TargetConfig) {
	for _, lu := range c.units() {
		s.AddLogicalUnit(lu, 1)
	}
}

// ChangeTarget replaces the configuration of the target of that name. Sessions
// to which the same LUNs are granted as before notice nothing. Others see their
// LUNs come and go: commands to one that has gone are finished before it is
// given up, and a unit attention tells that the LUNs have changed (SPC-4 clause
// 6.33). Initiators that are not granted access any more, or not through their
// portal group, or would have to prove to be somebody else, are asked to log out, and
// disconnected if they do not: a user is the same with another secret. dismissed is
// how many sessions are to end.
func (s *Server) ChangeTarget(config TargetConfig) (dismissed int, err error) {
	config.Name = strings.ToLower(config.Name)
	s.addUnits(&config)
	s.mu.Lock()
	t := s.mu.targets[config.Name]
	if t == nil {
		s.mu.Unlock()
		return 0, fmt.Errorf("target %s: no target has that name", config.Name)
	}
	before := t.config.Swap(&config)
	s.directory.changes.Add(1)
	s.mu.Unlock()
	owners := s.settings.Load().Owners
	var out, revoked []*Session
	var told sync.WaitGroup
	for _, n := range s.sessionsOf(t) {
		rule, fault := config.admits(n.initiator, owners)
		if fault != nil {
			revoked = append(revoked, n)
			continue
		}
		if !slices.Contains(config.PortalGroups, n.portalGroup) {
			out = append(out, n)
			continue
		}
		n.remap(rule.LUNs, &told)
	}
	told.Wait()
	dismissed = s.revokeLUNs(revoked) + s.revokeAccess(out)
	if to := config.diversion(); to != "" && to != before.diversion() {
		dismissed += s.requestLogouts(s.sessionsOf(t), errDiverted)
	}
	return dismissed, nil
}

// RemoveTarget makes the target of that name unknown and asks the initiators of
// its sessions to log out; who does not is disconnected. dismissed is how many
// they are.
func (s *Server) RemoveTarget(name string) (dismissed int) {
	name = strings.ToLower(name)
	s.mu.Lock()
	t := s.mu.targets[name]
	delete(s.mu.targets, name)
	s.mu.order = slices.DeleteFunc(s.mu.order, func(o *Target) bool { return o == t })
	if t != nil {
		nothing := *t.config.Load()
		nothing.Access = nil // copies that were begun through it stop
		t.config.Store(&nothing)
		s.directory.changes.Add(1)
	}
	s.mu.Unlock()
	if t == nil {
		return 0
	}
	return s.revokeAccess(s.sessionsOf(t))
}

// sessionsOf returns the sessions with a target.
func (s *Server) sessionsOf(t *Target) []*Session {
	return slices.DeleteFunc(s.sessions(), func(n *Session) bool { return n.target != t })
}

// stillGranted refuses a session whose target or portal, or the server's settings, have
// changed since its login was looked at: whoever changed them has not seen the session.
// The caller holds mu.
func (s *Server) stillGranted(n *Session) *login.Error {
	t := n.target
	if n.settings != s.settings.Load() {
		return login.Errorf(pdu.LoginServiceUnavailable, "the server's settings were changed during login")
	}
	if t == nil {
		return nil
	}
	if s.mu.targets[t.name] != t || t.config.Load() != n.admittedBy {
		return login.Errorf(pdu.LoginServiceUnavailable, "target %s was changed during login", t.name)
	}
	if n.portal != nil && !s.mu.groups[n.portalGroup].serves(n) {
		return login.Errorf(pdu.LoginServiceUnavailable, "the portal %s was closed during login", n.local)
	}
	return s.diversion(n.admittedBy, n.portalGroup, n.local)
}
