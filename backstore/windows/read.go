package windows

import "lunar/backstore"

// direct says which member serves a read by itself; it runs on event threads.
func (m *Mirror) direct(off, n int64) int {
	if v := m.view.Load(); !v.overlay {
		return v.reader
	}
	m.held.RLock()
	defer m.held.RUnlock()
	// What is held is there as long as this view is, for it goes only after the view has.
	v := m.view.Load()
	if v.overlay && m.held.touches(off, n) {
		return -1
	}
	return v.reader
}

// read serves what needs more than one place, or another one after an error.
func (m *Mirror) read(op *backstore.Op) error {
	m.gate.RLock()
	defer m.gate.RUnlock()
	if m.mode != paired {
		err := m.disks[m.leader].read(op.Off, op.Data)
		if err != nil && m.mode == behind && !m.isStale(op.Off, op.Length()) {
			return m.disks[m.other()].read(op.Off, op.Data)
		}
		return err
	}
	err := m.readOther(op)
	if err == nil {
		return nil
	}
	// The leader has all of it. What the other one cannot read is written anew.
	if leader := m.disks[m.leader].read(op.Off, op.Data); leader != nil {
		return err
	}
	m.log.Warn("a mirror's member could not be read: the other one has the data, and they are written anew", "member", m.config.Members[m.other()].Name, "byte", op.Off, "err", err)
	m.counts.mended.Add(1)
	if mark := m.mark(op.Off, op.Length()); mark == nil {
		m.lacks(op.Off, op.Length())
	}
	return nil
}

// readOther reads from the member that serves reads, and what is held for it.
func (m *Mirror) readOther(op *backstore.Op) error {
	b := m.memory.take()
	defer m.memory.give(b)
	for done := int64(0); done < op.Length(); {
		n := min(op.Length()-done, chunk)
		data, off := op.Data[done:done+n], op.Off+done
		gaps := m.held.fill(data, off)
		if len(gaps) > 0 {
			if err := m.disks[m.other()].read(off, b[:n]); err != nil {
				return err
			}
		}
		for _, g := range gaps {
			copy(data[g.off-off:][:g.n], b[g.off-off:])
		}
		done += n
	}
	return nil
}

// inline serves a read that memory alone can, on an event thread.
func (m *Mirror) inline(off int64, data []byte) bool {
	if v := m.view.Load(); !v.overlay || len(data) > inlineMost {
		return false
	}
	m.held.RLock()
	defer m.held.RUnlock()
	return m.held.covers(off, int64(len(data))) && len(m.held.overlay(data, off)) == 0
}

// inlineMost bounds what event threads copy of what is held, in bytes.
const inlineMost = 64 << 10

// covers reports whether all of a range is held.
func (h *held) covers(off, n int64) bool {
	sum := int64(0)
	h.each(off, n, func(e extent) { sum += e.n })
	return sum == n
}

// fill puts what is held of a range over data, and returns what is not.
func (h *held) fill(data []byte, off int64) (gaps []extent) {
	h.RLock()
	defer h.RUnlock()
	return h.overlay(data, off)
}

func (h *held) overlay(data []byte, off int64) (gaps []extent) {
	at, end := off, off+int64(len(data))
	h.each(off, end-off, func(e extent) {
		if at < e.off {
			gaps = append(gaps, extent{off: at, n: e.off - at})
		}
		at = e.end()
		part := data[e.off-off:][:e.n]
		if e.at < 0 {
			clear(part)
		} else {
			copy(part, h.memory.Bytes()[e.at:])
		}
	})
	if at < end {
		gaps = append(gaps, extent{off: at, n: end - at})
	}
	return gaps
}
