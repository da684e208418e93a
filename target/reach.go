package target

import "lunar/target/scsi"

// Reach implements scsi.Port: a copy may use the logical units of the session
// that asks for it, and those of the sessions of that name which the same user of the
// same auth group has proven to be his. Who has proven nothing has its own session only.
func (t *task) Reach(_ *scsi.Command, match func(*scsi.Nexus) bool) (scsi.CSCD, bool) {
	c := t.conn
	for _, l := range c.luns {
		if match(l.nexus) && t.use(l.nexus.LU) {
			return scsi.CSCD{Nexus: l.nexus, Lane: l.lane}, true
		}
	}
	for _, other := range c.session.node.sessions() {
		if other == c.session || other.target == nil || !other.sameInitiator(c.session) {
			continue
		}
		if unit, ok := t.reachThrough(other, match); ok {
			return unit, true
		}
	}
	return scsi.CSCD{}, false
}

// sameInitiator reports whether both sessions are proven to be of one initiator.
func (o *Session) sameInitiator(n *Session) bool {
	return n.initiator.Proof.Proven() && o.initiator.Name == n.initiator.Name && o.initiator.Proof == n.initiator.Proof
}

// reachThrough looks for a logical unit in another session, which may be about
// to begin or to end: its nexus counts while it is attached.
func (t *task) reachThrough(other *Session, match func(*scsi.Nexus) bool) (scsi.CSCD, bool) {
	c := t.conn
	for _, m := range other.view.Load().luns {
		n := m.LU.Attached(other.Port(), other.target.Name(), other.portalGroup)
		if m.unmapped || n == nil || !match(n) || !t.use(n.LU) {
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

// use keeps a logical unit from being closed until the task ends. It is false
// when that has begun.
func (t *task) use(lu *scsi.LogicalUnit) bool {
	if !t.conn.session.node.use(lu) {
		return false
	}
	t.used = append(t.used, lu)
	return true
}

// releaseUnits ends what use began.
func (t *task) releaseUnits() {
	t.conn.session.node.release(t.used)
	t.used = nil
}
