package target

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"lunar/internal/iscsiname"
	"lunar/target/login"
	"lunar/target/pdu"
)

// Claim is a login to a target as far as it is known before anybody makes it.
type Claim struct {
	Initiator Initiator // Proof: whom it would prove to be
	Target    string    // iSCSI name
	Group     uint16    // tag of the portal group that it comes by
	Local     netip.AddrPort
}

// Step is what of a login decides.
type Step string

// The steps, in the order of a login.
const (
	ByName           Step = "initiator name"
	ByTarget         Step = "target"
	ByPortalGroup    Step = "portal group"
	ByAccessRule     Step = "access rule"
	ByRedirection    Step = "redirection"
	ByAuthentication Step = "authentication"
	ByOwner          Step = "owner of the name"
	ByLimits         Step = "limits"
)

// Judgement is what a login would come to.
type Judgement struct {
	Fault  *login.Error // nil: it would be admitted
	By     Step         // what decides, if there is a Fault
	Absent string       // why there is no such target for the initiator, which learns Fault instead; empty: there is one
	Rule   *AccessRule  // the first that matches; nil: none was looked for, or none does
	Number int          // of Rule, from 1
	Config *TargetConfig
}

// found is what a login is about, before anybody has proven anything.
type found struct {
	target *Target
	config *TargetConfig
	rule   int // index in Access; -1: none
	absent string
	by     Step
}

// find looks for what a login asks for. Targets that are not there, that are not for the
// initiator, and that are not reached by the portal group are all absent.
func (s *Server) find(c *Claim) found {
	t := s.target(c.Target)
	if t == nil {
		return found{rule: -1, by: ByTarget, absent: fmt.Sprintf("no target %q", c.Target)}
	}
	f := found{target: t, config: t.config.Load(), rule: -1}
	if !slices.Contains(f.config.PortalGroups, c.Group) {
		f.by, f.absent = ByPortalGroup, fmt.Sprintf("no target %q in portal group %d", c.Target, c.Group)
		return f
	}
	if f.rule = f.config.firstRule(c.Initiator); f.rule < 0 {
		f.by, f.absent = ByAccessRule, fmt.Sprintf("no access rule of %s matches", t.Name())
	}
	return f
}

// nameFault is why an InitiatorName is none.
func nameFault(name string) *login.Error {
	if _, err := iscsiname.Normal(name); err != nil {
		return login.Errorf(pdu.LoginInitiatorError, "InitiatorName: found %v", err)
	}
	return nil
}

// Judge tells what a login would come to now, with the code that judges logins. It
// does not know the initiator's ISID: a registration under the same initiator port by
// another user is not among what it looks at, nor is a wrong secret.
func (s *Server) Judge(c Claim) Judgement {
	if fault := nameFault(c.Initiator.Name); fault != nil {
		return Judgement{Fault: fault, By: ByName}
	}
	f := s.find(&c)
	j := Judgement{By: f.by, Absent: f.absent, Config: f.config}
	if f.absent != "" {
		if _, j.Fault = s.nothing(&c, f.absent); j.Fault == nil { // it is asked for a proof, and none is right
			j.Fault = login.Errorf(pdu.LoginAuthenticationFailure, "%s", f.absent)
		}
		return j
	}
	j.Rule, j.Number = &f.config.Access[f.rule], f.rule+1
	s.mu.Lock()
	j.Fault = s.diversion(f.config, c.Group, c.Local)
	s.mu.Unlock()
	if j.By = ByRedirection; j.Fault != nil {
		return j
	}
	settings := s.settings.Load()
	n := &Session{node: s, initiator: c.Initiator, target: f.target, portalGroup: c.Group, local: c.Local, settings: settings, admittedBy: f.config}
	if _, j.Fault = n.judge(settings, f.config); j.Fault != nil {
		if j.By = ByOwner; !j.Rule.Auth.Accepts(c.Initiator.Proof) {
			j.By = ByAuthentication
		}
		return j
	}
	if j.Fault = s.lacksPlace(n); j.Fault != nil {
		j.By = ByLimits
		return j
	}
	j.By = ""
	return j
}

// lacksPlace is why there is no place for a session. It does not concern one that would
// replace another.
func (s *Server) lacksPlace(n *Session) *login.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closing {
		return login.Errorf(pdu.LoginServiceUnavailable, "the server is shutting down")
	}
	for _, o := range s.mu.sessions {
		if o.target == n.target && o.initiator.Name == n.initiator.Name && o.sameUser(n) {
			return nil
		}
	}
	now := time.Now()
	h := n.holder(&s.mu.admission, now)
	if c := s.mu.admission.contestOf(n, h, now); !c.table.Room(h, c.bounds, c.reserved, now) {
		return c.full(h)
	}
	return nil
}
