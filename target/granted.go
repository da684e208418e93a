package target

import "sync/atomic"

// granted is scsi.Nexus.Granted of a mapping: it holds the target's configuration of
// now against it. A target that is removed grants nothing.
func (s *Session) granted(m LUNMapping) func() (mapped, readOnly bool) {
	if s.target == nil || m.LU == nil {
		return nil
	}
	type answer struct {
		config           *TargetConfig // that it is about
		settings         *Settings
		mapped, readOnly bool
	}
	var last atomic.Pointer[answer]
	return func() (mapped, readOnly bool) {
		config, settings, a := s.target.config.Load(), s.server.settings.Load(), last.Load()
		if a == nil || a.config != config || a.settings != settings {
			a = &answer{config: config, settings: settings}
			a.mapped, a.readOnly = config.grants(s.initiator, settings.Owners, m)
			last.Store(a)
		}
		return a.mapped, a.readOnly
	}
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
