package windows

import (
	"cmp"
	"errors"
	"fmt"

	"lunar/backstore"
)

// perform does what event threads leave to goroutines.
func (m *Mirror) perform(op *backstore.Op) error {
	switch op.Kind {
	case backstore.Read:
		return m.read(op)
	case backstore.Write, backstore.WriteZeroes, backstore.Discard:
		return m.change(op)
	case backstore.Wipe:
		return m.wipe(op)
	}
	for { // the leader has all that was acknowledged, and knows what is provisioned
		m.gate.RLock()
		leader, mode := m.leader, m.mode
		err := m.disks[leader].do(op)
		m.gate.RUnlock()
		if err == nil || mode == alone || !fatal(err) {
			return err
		}
		if err := m.takeOver(leader, err); err != nil {
			return err
		}
	}
}

// wipe has both members wipe. One that fails is dropped, as after a write.
func (m *Mirror) wipe(op *backstore.Op) error {
	m.gate.RLock()
	leader, other, mode := m.leader, m.other(), m.mode
	var failed [2]error
	for i, d := range m.disks {
		if mode != alone || i == leader {
			part := *op
			failed[i] = d.do(&part)
		}
	}
	m.gate.RUnlock()
	switch {
	case failed[leader] != nil && failed[other] != nil:
		return errors.Join(failed[:]...)
	case failed[leader] != nil && mode != alone && fatal(failed[leader]):
		return m.takeOver(leader, failed[leader])
	case failed[other] != nil && fatal(failed[other]):
		m.fail(failed[other])
		return nil
	}
	return cmp.Or(failed[leader], failed[other])
}

// errAgain says that roles must change before an operation can be done.
var errAgain = errors.New("the members' roles must change first")

// change writes, zeroes or releases.
func (m *Mirror) change(op *backstore.Op) error {
	if op.Kind == backstore.Write && op.Length() > m.most() {
		return m.parts(op)
	}
	mine := m.claims.take(op.Off, op.Length())
	defer m.claims.release(mine)
	for {
		m.gate.RLock()
		leader := m.leader
		err, lost := m.apply(op)
		m.gate.RUnlock()
		switch {
		case lost:
			if taken := m.takeOver(leader, err); taken != nil {
				m.partly(op)
				return taken
			}
		case errors.Is(err, errAgain):
			if err := m.exchange(); err != nil {
				return err
			}
		default:
			return err
		}
	}
}

// partly notes that a part of a change that has failed may be on the leader.
func (m *Mirror) partly(op *backstore.Op) {
	m.gate.RLock()
	defer m.gate.RUnlock()
	if m.mode != alone {
		m.lacks(op.Off, op.Length())
	}
}

// most bounds what one write holds, in bytes.
func (m *Mirror) most() int64 { return m.config.Held / 4 }

// parts writes more than that, piece by piece.
func (m *Mirror) parts(op *backstore.Op) error {
	for done := int64(0); done < op.Length(); {
		n := min(op.Length()-done, m.most()&^4095)
		part := backstore.Op{Kind: op.Kind, FUA: op.FUA, Off: op.Off + done, Data: op.Data[done : done+n]}
		if err := m.change(&part); err != nil {
			return err
		}
		done += n
	}
	return nil
}

// apply changes the leader, and the other member or what is held for it. lost says that
// the leader has failed.
func (m *Mirror) apply(op *backstore.Op) (err error, lost bool) {
	var e extent
	if m.mode == paired {
		var room bool
		if e, room = m.held.reserve(op); !room {
			return errAgain, false
		}
	}
	if err := m.mark(op.Off, op.Length()); err != nil {
		return err, false
	}
	part := *op
	err = m.disks[m.leader].do(&part)
	m.counts.changed.Add(1)
	switch {
	case err == nil && m.mode == paired:
		m.hold(e)
	case err == nil && m.mode == behind:
		m.follow(op)
	case err != nil && m.mode != alone && fatal(err):
		return err, true
	case err != nil && m.mode != alone: // a part of it may be there
		m.lacks(op.Off, op.Length())
	}
	return err, false
}

// fatal reports whether an error of a member is more than an answer to one operation.
func fatal(err error) bool {
	return !errors.Is(err, backstore.ErrNoSpace) && !errors.Is(err, backstore.ErrUnsupported) && !errors.Is(err, backstore.ErrOutOfRange)
}

// reserve copies what is to be held of an operation, if there is room.
func (h *held) reserve(op *backstore.Op) (e extent, room bool) {
	e = extent{off: op.Off, n: op.Length(), at: zeroed}
	h.Lock()
	room = h.count < heldExtents && (op.Kind != backstore.Write || h.used+e.n <= int64(len(h.memory.Bytes())))
	switch {
	case !room:
	case op.Kind == backstore.Discard:
		e.at = discarded
	case op.Kind == backstore.Write:
		e.at = h.used
		h.used += e.n
	}
	h.Unlock()
	if e.at >= 0 && room {
		copy(h.memory.Bytes()[e.at:], op.Data)
	}
	return e, room
}

// hold has the other member get later what the leader has now.
func (m *Mirror) hold(e extent) {
	m.held.Lock()
	m.held.put(e)
	m.held.Unlock()
	m.windows.Lock()
	m.windows.pair.Set(m.other()).Hold()
	m.windows.Unlock()
}

// follow has the other member do what the leader has done, unless it lacks a part of
// those regions: then it lacks all of them until they are copied.
func (m *Mirror) follow(op *backstore.Op) {
	if m.isStale(op.Off, op.Length()) {
		m.lacks(op.Off, op.Length())
		return
	}
	part := *op
	if err := m.disks[m.other()].do(&part); err != nil {
		m.lacks(op.Off, op.Length())
		if fatal(err) {
			m.fail(err)
		}
	}
}

// isStale reports whether the other member lacks a region of a range.
func (m *Mirror) isStale(off, n int64) bool {
	first, last := m.regionsOf(off, n)
	m.stale.Lock()
	defer m.stale.Unlock()
	for r := first; r <= last; r++ {
		if m.stale.has(r) {
			return true
		}
	}
	return false
}

// lacks notes that the other member does not have regions as the leader has them.
func (m *Mirror) lacks(off, n int64) {
	first, last := m.regionsOf(off, n)
	m.stale.Lock()
	defer m.stale.Unlock()
	for r := first; r <= last; r++ {
		m.stale.add(r)
	}
	m.poke()
}

// poke wakes the background.
func (m *Mirror) poke() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// mark makes it stable that the members may differ in a range.
func (m *Mirror) mark(off, n int64) error {
	first, last := m.regionsOf(off, n)
	c := &m.map_
	c.Lock()
	defer c.Unlock()
	next := c.note
	for r := first; r <= last; r++ {
		m.recent.add(r)
		next.differ.add(r)
	}
	if next.differ == c.note.differ && !c.doubt {
		return nil
	}
	return m.save(&next)
}

// save makes a note stable, which is in force then. The caller holds the map.
func (m *Mirror) save(next *note) error {
	if err := m.map_.chart.save(next); err != nil {
		// The slot may have it or not: the next one goes over the same slot, and nothing
		// changes before.
		m.map_.doubt = true
		text := err.Error()
		m.trouble.Store(&text)
		return fmt.Errorf("mirror: %w", err)
	}
	m.trouble.Store(nil)
	m.map_.note, m.map_.doubt = *next, false
	return nil
}
