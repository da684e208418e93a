package target

import (
	"lunar/target/scsi"
)

// Reach implements scsi.Port: a copy may use the logical units of the session
// that asks for it, and those of the other sessions that the same initiator has
// in this server: where it has proven who it is.
func (t *task) Reach(_ *scsi.Command, match func(*scsi.Nexus) bool) (scsi.CSCD, bool) {
	c := t.conn
	for _, l := range c.luns {
		if match(l.nexus) {
			return scsi.CSCD{Nexus: l.nexus, Lane: l.lane}, true
		}
	}
	for _, other := range c.session.server.allSessions() {
		if other == c.session || other.target == nil || other.initiator.Name != c.session.initiator.Name {
			continue
		}
		if unit, ok := c.reachThrough(other, match); ok {
			return unit, true
		}
	}
	return scsi.CSCD{}, false
}

// reachThrough looks for a logical unit in another session, which may be about
// to begin or to end: its nexus counts while it is attached.
func (c *Connection) reachThrough(other *Session, match func(*scsi.Nexus) bool) (scsi.CSCD, bool) {
	for _, m := range other.rule.LUNs {
		n := m.LU.Attached(other.Port(), other.target.Name())
		if n == nil || !match(n) {
			continue
		}
		lane, err := c.thread.lane(n.LU)
		if err != nil {
			c.log.Warn("no way to a logical unit that is to be copied", "volume", n.LU.Name(), "error", err)
			return scsi.CSCD{}, false
		}
		return scsi.CSCD{Nexus: n, Lane: lane}, true
	}
	return scsi.CSCD{}, false
}
