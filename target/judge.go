package target

import (
	"slices"

	"lunar/internal/refusals"
	"lunar/target/login"
	"lunar/target/pdu"
	"lunar/target/scsi"
)

// admits returns the rule by which an initiator may use the target, or why it may not.
// It judges logins, the sessions that there are after a change, and what copies go on
// with.
func (c *TargetConfig) admits(i Initiator, owners *Owners) (*AccessRule, *login.Error) {
	rule := c.ruleFor(i)
	switch {
	case rule == nil:
		return nil, login.Errorf(pdu.LoginAuthorizationFailure, "no access rule of %s matches", c.Name)
	case !rule.Auth.Accepts(i.Proof):
		return nil, login.Errorf(pdu.LoginAuthenticationFailure, "%s asks for a user of auth group %q", c.Name, rule.Auth.Group)
	}
	if fault := owners.refusal(i); fault != nil {
		return nil, fault
	}
	return rule, nil
}

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

// stays reports whether the session would be admitted now.
func (n *Session) stays() bool {
	var config *TargetConfig
	if n.target != nil {
		config = n.target.config.Load()
	}
	_, fault := n.judge(n.server.settings.Load(), config)
	return fault == nil
}

// withdrawFrom asks sessions to log out that would not be admitted any more.
func (s *Server) withdrawFrom(sessions []*Session) (asked int) {
	asked = s.dismiss(sessions, errWithdrawn)
	for range asked {
		s.refusals.Add(refusals.Withdrawn)
	}
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

// trespasses tells why a session may not use a logical unit: its initiator port is
// registered there by another user, who may still come to the target and would find
// somebody else behind the reservation. A name that is a user's own needs no memory.
func (n *Session) trespasses(lu *scsi.LogicalUnit) *login.Error {
	who, known := lu.Registrant(n.Port(), n.target.Name()).(login.Proof)
	if !known || who == n.initiator.Proof || n.server.settings.Load().Owners.own(n.initiator) {
		return nil
	}
	comes := func(r AccessRule) bool { return r.Auth.Has(who) }
	if !slices.ContainsFunc(n.target.config.Load().Access, comes) {
		return nil
	}
	return login.Errorf(pdu.LoginAuthorizationFailure, "the initiator port is registered with volume %s by user %q: give the name to one of them by initiators of chap, or clear the reservations", lu.Name(), who)
}
