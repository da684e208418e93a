package windows

import (
	"errors"
	"fmt"

	"lunar/backstore"
)

// Resize implements backstore.Resizer. Members grow before the volume does; in what is new
// they may differ until it was copied. A member that was dropped grows when it is back.
// Members that cannot be cut stay larger than the volume.
func (m *Mirror) Resize(size int64) error {
	m.joining.Lock()
	defer m.joining.Unlock()
	old := m.size()
	err := m.sound(size)
	switch {
	case err != nil:
	case size < old:
		err = m.shrink(old, size)
	default: // devices may have grown though the size is the same
		err = m.grow(old, size)
	}
	if err != nil {
		return fmt.Errorf("mirror: resize from %d to %d bytes: %w", old, size, err)
	}
	return nil
}

// sound refuses a size that no store may have.
func (f *front) sound(size int64) error {
	if unit := int64(f.Info().BlockSize); size <= 0 || size%unit != 0 {
		return fmt.Errorf("expected a positive multiple of %d bytes", unit)
	}
	return nil
}

// grow has the members grow, and then the volume. Nobody uses what is behind its end yet, so
// that initiators do not wait until that has become zeroes. No member comes back meanwhile.
func (m *Mirror) grow(old, size int64) error {
	var failed [2]error
	for i := range m.disks {
		m.gate.RLock()
		used := m.uses(i)
		m.gate.RUnlock()
		if used {
			failed[i] = m.growMember(i, old, size)
		}
	}
	m.gate.Lock()
	defer m.gate.Unlock()
	for i, err := range failed {
		if err != nil && m.uses(i) {
			return fmt.Errorf("member %s: %w", m.config.Members[i].Name, err)
		}
	}
	if size == old {
		return nil
	}
	return m.refit(old, size)
}

// uses reports whether a member has not been dropped. The caller holds the gate.
func (m *Mirror) uses(i int) bool { return i == m.leader || m.mode != alone }

// growMember has a member be as large as it can be, at least size, with zeroes behind old.
func (m *Mirror) growMember(i int, old, size int64) error {
	slot, want := m.slots[i], size
	was := slot.Info().Size
	if measure := m.config.Members[i].Size; measure != nil {
		now, err := measure()
		if err != nil {
			return err
		}
		want = max(size, now)
	}
	if want > was {
		if err := backstore.Resize(slot, want); err != nil {
			return err
		}
	}
	return m.disks[i].clear(old, min(was, size), m.quit)
}

// shrink ends the volume earlier, when nothing behind that is under way any more, and then
// cuts the members.
func (m *Mirror) shrink(old, size int64) error {
	m.resized(size)
	m.counters.Wait()
	m.gate.Lock()
	defer m.gate.Unlock()
	if err := m.refit(old, size); err != nil {
		m.resized(old)
		return err
	}
	for i, slot := range m.slots {
		if !m.uses(i) {
			continue
		}
		if err := backstore.Resize(slot, size); err != nil {
			m.log.Warn("a mirror's member stays larger than the volume", "member", m.config.Members[i].Name, "err", err)
		}
	}
	return nil
}

// refit gives the volume another size, once nothing is held. The caller holds the gate alone.
func (m *Mirror) refit(old, size int64) error {
	m.view.Store(&view{reader: m.leader})
	defer m.look()
	if m.mode == paired {
		if err := m.deliver(); err != nil {
			if dropped := m.drop(m.other(), err); dropped != nil {
				return errors.Join(err, dropped)
			}
		}
	}
	next := m.map_.note
	next.resize(size)
	if err := m.save(&next); err != nil {
		return err
	}
	m.shift = regionShift(size)
	m.recent.resize(old, size)
	m.differing.fit(old, size)
	if m.mode != alone {
		m.stale.Lock()
		m.stale.resize(old, size)
		m.stale.Unlock()
		m.mode = behind
		m.poke()
	}
	m.resized(size)
	return nil
}
