package target

import (
	"slices"
	"sync/atomic"

	"lunar/target/login"
	"lunar/target/pdu"
	"lunar/target/scsi"
)

// Target is one target node. Its configuration is replaced as a whole, under
// Server.mu.
type Target struct {
	name   string
	config atomic.Pointer[TargetConfig]
}

// Name returns the iSCSI name.
func (t *Target) Name() string { return t.name }

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

// grants reports whether the initiator sees a logical unit under the LUN of m, and
// may only read it.
func (c *TargetConfig) grants(i Initiator, owners *Owners, m LUNMapping) (mapped, readOnly bool) {
	rule, fault := c.admits(i, owners)
	if fault != nil {
		return false, false
	}
	for _, l := range rule.LUNs {
		if l.LUN == m.LUN && l.LU == m.LU {
			return true, l.ReadOnly
		}
	}
	return false, false
}

func (c *TargetConfig) units() (units []*scsi.LogicalUnit) {
	for i := range c.Access {
		for _, m := range c.Access[i].LUNs {
			if !slices.Contains(units, m.LU) {
				units = append(units, m.LU)
			}
		}
	}
	return units
}

// diversion is where logins to the target are sent; empty: they are served.
func (c *TargetConfig) diversion() string {
	if c.Moved != "" {
		return c.Moved
	}
	return c.Redirect
}
