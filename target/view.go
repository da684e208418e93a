package target

import (
	"cmp"
	"slices"

	"lunar/target/pdu"
	"lunar/target/scsi"
)

// view is what a session's initiator sees of its target. It does not change:
// the session gets another one.
type view struct {
	luns []*seenLUN // ascending by LUN, but those that are leaving
}

// seenLUN is one LUN of a view and what its commands have done; all but traffic
// does not change.
type seenLUN struct {
	LUNMapping
	traffic *lunTraffic
	leaving bool // it is not mapped any more, but commands of it run
}

func see(m LUNMapping) *seenLUN { return &seenLUN{LUNMapping: m, traffic: &lunTraffic{}} }

// join gives a session, which is not registered yet, what a rule of its target
// grants, and its leading connection on an event thread, which it returns: the first
// command will carry cmdSN. nil is a discovery session's rule.
func (s *Session) join(rule *AccessRule, home *thread, cmdSN pdu.SN, cid uint16) *Connection {
	v := &view{}
	if rule != nil {
		for _, m := range rule.LUNs {
			v.luns = append(v.luns, see(m))
		}
	}
	s.view.Store(v)
	s.ended = make(chan struct{})
	s.core = newCore(s, home, cmdSN, cid)
	first := newConnection(s.core, cid, s.local, s.remote)
	s.core.conns = append(s.core.conns, first)
	s.core.show()
	return first
}

// visibleLUNs is the LUN numbers that REPORT LUNS tells this initiator.
func (s *Session) visibleLUNs() []uint64 {
	luns := []uint64{}
	for _, l := range s.view.Load().luns {
		if !l.leaving {
			luns = append(luns, uint64(l.LUN))
		}
	}
	return luns
}

// sees reports whether commands of the session may reach the logical unit.
func (s *Session) sees(lu *scsi.LogicalUnit) bool {
	return slices.ContainsFunc(s.view.Load().luns, func(l *seenLUN) bool { return l.LU == lu })
}

// remap makes the session's LUNs those of a rule that has changed, on the
// session's thread. What stays is left alone.
func (c *core) remap(to []LUNMapping) {
	switch {
	case !c.opened:
		c.session.show(to)
	case c.finished:
	default: // also when its only connection is one in login
		c.changeLUNs(to)
	}
}

// show replaces the view of a session whose connection has not started.
func (s *Session) show(to []LUNMapping) {
	v := &view{}
	for _, m := range to {
		v.luns = append(v.luns, see(m))
	}
	s.view.Store(v)
}

func (c *core) changeLUNs(to []LUNMapping) {
	next := &view{}
	var luns, opened []*lun
	for _, m := range to {
		l := c.mapped(m)
		seen := &seenLUN{LUNMapping: m}
		if l == nil {
			var err error
			if l, err = c.openLUN(see(m)); err != nil {
				c.luns = append(c.luns, opened...) // for their end
				c.closeAll(err)
				return
			}
			opened = append(opened, l)
		} else {
			l.protect(m.ReadOnly)
		}
		seen.traffic = l.traffic
		next.luns, luns = append(next.luns, seen), append(luns, l)
	}
	changed := len(opened) > 0
	for _, l := range c.luns {
		if !slices.Contains(luns, l) {
			c.leaving, changed = append(c.leaving, l), true
		}
	}
	slices.SortFunc(luns, func(a, b *lun) int { return cmp.Compare(a.number, b.number) })
	before := c.luns
	c.luns = luns
	next.luns = append(next.luns, c.departing()...)
	c.session.view.Store(next)
	if changed {
		c.tellLUNs(before)
	}
	c.letGo()
}

// mapped returns the LUN of the session that maps a logical unit as m does.
func (c *core) mapped(m LUNMapping) *lun {
	for _, l := range c.luns {
		if l.number == uint64(m.LUN) && l.nexus.LU == m.LU {
			return l
		}
	}
	return nil
}

// protect changes whether the initiator may write, which mode pages tell.
func (l *lun) protect(readOnly bool) {
	if l.nexus.ReadOnly.Swap(readOnly) != readOnly {
		l.nexus.Attention(scsi.ASCModeParametersChanged)
	}
}

// departing is how a view shows the LUNs that are leaving.
func (c *core) departing() (out []*seenLUN) {
	for _, l := range c.leaving {
		m := LUNMapping{LUN: uint16(l.number), LU: l.nexus.LU, ReadOnly: l.nexus.ReadOnly.Load()}
		out = append(out, &seenLUN{LUNMapping: m, traffic: l.traffic, leaving: true})
	}
	return out
}

// tellLUNs tells the initiator that its LUNs have changed: by a unit attention
// condition for each that it had before and still has, and by an asynchronous
// event, since an idle initiator sends no command that could be answered so
// (RFC 7143 section 11.9.1, event 0).
func (c *core) tellLUNs(before []*lun) {
	for _, l := range c.luns {
		if slices.Contains(before, l) {
			l.nexus.Attention(scsi.ASCReportedLUNsDataChanged)
		}
	}
	sense := scsi.Sense{Key: scsi.UnitAttention, ASC: scsi.ASCReportedLUNsDataChanged}
	data := sense.Append(make([]byte, 2, 2+scsi.MaxSenseLength), false)
	data[1] = byte(len(data) - 2) // SenseLength
	var p pdu.AsyncMessage
	p.Init()
	p.SetEvent(pdu.AsyncSCSIEvent)
	p.BHS().SetDataSegmentLength(len(data))
	if o := c.speaker(); o != nil {
		o.mover.SendControl(p.BHS(), data, nil)
	}
}

// letGo gives up the leaving LUNs that have no tasks left.
func (c *core) letGo() {
	var gone []*lun
	c.leaving = slices.DeleteFunc(c.leaving, func(l *lun) bool {
		busy := len(c.tasks.appendMatching(nil, func(t *task) bool { return t.lun == l })) > 0
		if !busy {
			gone = append(gone, l)
		}
		return !busy
	})
	if len(gone) == 0 {
		return
	}
	for _, l := range gone {
		c.thread.gate.closeLUN(c, l, true)
		l.nexus.LU.Detach(l.nexus)
	}
	c.thread.gate.forget(c)
	c.session.see(c.departing(), gone)
}

// see replaces the leaving LUNs of the view; what those that are gone have
// counted stays with the server.
func (s *Session) see(leaving []*seenLUN, gone []*lun) {
	v := &view{luns: slices.DeleteFunc(slices.Clone(s.view.Load().luns), func(l *seenLUN) bool { return l.leaving })}
	v.luns = append(v.luns, leaving...)
	srv := s.server
	srv.mu.Lock()
	defer srv.mu.Unlock()
	for _, l := range gone {
		srv.mu.past[l.nexus.LU] = srv.mu.past[l.nexus.LU].plus(l.traffic.sum())
	}
	s.view.Store(v)
	srv.tellSeenLess()
}

// endLeaving ends what still runs for LUNs that are not mapped any more, as if
// it had come now; what the backing store is doing is waited for.
func (c *core) endLeaving() {
	for _, t := range c.tasks.appendMatching(nil, func(t *task) bool { return t.lun != nil && slices.Contains(c.leaving, t.lun) }) {
		if t.listed && !t.cmd.Aborted() && !t.fetching() {
			t.conn.withdraw(t)
			t.fail(scsi.LUNotSupported)
		}
	}
}

// tellSeenLess wakes those who wait for sessions to see less. The caller holds
// mu.
func (s *Server) tellSeenLess() {
	close(s.mu.seenLess)
	s.mu.seenLess = make(chan struct{})
}
