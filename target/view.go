package target

import (
	"cmp"
	"slices"
	"sync"

	"lunar/target/pdu"
	"lunar/target/scsi"
	"lunar/target/scsi/sense"
)

// view is what a session's initiator sees of its target. It does not change:
// the session gets another one.
type view struct {
	luns []*seenLUN // ascending by LUN, but those that are unmapped
}

// seenLUN is one LUN of a view and what its commands have done; all but traffic
// does not change.
type seenLUN struct {
	LUNMapping
	traffic  *lunTraffic
	unmapped bool // it is not mapped any more, but commands of it run
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
	s.state = newSessionState(s, home, cmdSN, cid)
	first := newConnection(s.state, cid, s.local, s.remote)
	s.state.conns = append(s.state.conns, first)
	s.state.show()
	return first
}

// visibleLUNs is the LUN numbers that REPORT LUNS tells this initiator.
func (s *Session) visibleLUNs() []uint64 {
	luns := []uint64{}
	for _, l := range s.view.Load().luns {
		if !l.unmapped {
			luns = append(luns, uint64(l.LUN))
		}
	}
	return luns
}

// sees reports whether commands of the session may reach the logical unit.
func (s *Session) sees(lu *scsi.LogicalUnit) bool {
	return slices.ContainsFunc(s.view.Load().luns, func(l *seenLUN) bool { return l.LU == lu })
}

// remap has the session's thread make its LUNs those of a rule that has changed; done
// waits for that.
func (s *Session) remap(to []LUNMapping, done *sync.WaitGroup) {
	done.Add(1)
	s.state.post(func() {
		defer done.Done()
		s.state.remap(to)
	})
}

// remap makes the session's LUNs those of a rule that has changed, on the
// session's thread. What stays is left alone.
func (c *sessionState) remap(to []LUNMapping) {
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

func (c *sessionState) changeLUNs(to []LUNMapping) {
	next := &view{}
	var luns, opened []*lun
	for _, m := range to {
		l := c.mapped(m)
		seen := &seenLUN{LUNMapping: m}
		if l == nil {
			if l = c.offer(see(m)); l == nil {
				continue
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
			c.unmapped, changed = append(c.unmapped, l), true
		}
	}
	slices.SortFunc(luns, func(a, b *lun) int { return cmp.Compare(a.number, b.number) })
	before := c.luns
	c.luns = luns
	defer c.classify()
	next.luns = append(next.luns, c.seenUnmapped()...)
	c.session.view.Store(next)
	if changed {
		c.tellLUNs(before)
	}
	c.removeUnmapped()
}

// mapped returns the LUN of the session that maps a logical unit as m does.
func (c *sessionState) mapped(m LUNMapping) *lun {
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
		l.nexus.Attention(sense.ASCModeParametersChanged)
	}
}

// seenUnmapped is how a view shows the LUNs that are not mapped any more.
func (c *sessionState) seenUnmapped() (out []*seenLUN) {
	for _, l := range c.unmapped {
		m := LUNMapping{LUN: uint16(l.number), LU: l.nexus.LU, ReadOnly: l.nexus.ReadOnly.Load()}
		out = append(out, &seenLUN{LUNMapping: m, traffic: l.traffic, unmapped: true})
	}
	return out
}

// tellLUNs tells the initiator that its LUNs have changed: by a unit attention
// condition for each that it had before and still has, and by an asynchronous
// event, since an idle initiator sends no command that could be answered so
// (RFC 7143 section 11.9.1, event 0).
func (c *sessionState) tellLUNs(before []*lun) {
	for _, l := range c.luns {
		if slices.Contains(before, l) {
			l.nexus.Attention(sense.ASCReportedLUNsDataChanged)
		}
	}
	changed := sense.Data{Key: sense.UnitAttention, ASC: sense.ASCReportedLUNsDataChanged}
	data := changed.Append(make([]byte, 2, 2+sense.MaxLength), false)
	data[1] = byte(len(data) - 2) // SenseLength
	var p pdu.AsyncMessage
	p.Init()
	p.SetEvent(pdu.AsyncSCSIEvent)
	p.BHS().SetDataSegmentLength(len(data))
	if o := c.speaker(); o != nil && !c.logoutRequested { // else it was told more
		o.mover.SendControl(p.BHS(), data, nil)
	}
}

// removeUnmapped removes the unmapped LUNs that have no tasks left.
func (c *sessionState) removeUnmapped() {
	var gone []*lun
	c.unmapped = slices.DeleteFunc(c.unmapped, func(l *lun) bool {
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
	c.session.see(c.seenUnmapped(), gone)
}

// see replaces the unmapped LUNs of the view; what those that are gone have
// counted stays with the server.
func (s *Session) see(unmapped []*seenLUN, gone []*lun) {
	v := &view{luns: slices.DeleteFunc(slices.Clone(s.view.Load().luns), func(l *seenLUN) bool { return l.unmapped })}
	v.luns = append(v.luns, unmapped...)
	s.node.seesLess(s, v, gone)
}

// failUnmapped ends what still runs for LUNs that are not mapped any more, as if
// it had come now; what the backing store is doing is waited for.
func (c *sessionState) failUnmapped() {
	for _, t := range c.tasks.appendMatching(nil, func(t *task) bool { return t.lun != nil && slices.Contains(c.unmapped, t.lun) }) {
		if t.listed && !t.cmd.Aborted() && !t.fetching() {
			t.conn.revokePlace(t)
			t.fail(sense.LUNotSupported)
		}
	}
}
