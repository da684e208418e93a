package windows

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lunar/backstore"
)

// letGo bounds how long a member that was dropped is waited for.
const letGo = 10 * time.Second

// drop goes on without the other member. The caller holds the gate alone.
func (m *Mirror) drop(o int, why error) error {
	next := m.map_.note
	next.lost[o] = true
	next.differ.join(&m.recent)
	if err := m.save(&next); err != nil {
		return err
	}
	m.dropped(o, why)
	return nil
}

// dropLeader has the other member, which has everything, go on alone. The caller holds
// the gate alone.
func (m *Mirror) dropLeader(why error) error {
	from := m.leader
	next := m.map_.note
	next.leader, next.lost[from] = m.other(), true
	next.differ.join(&m.recent)
	if err := m.save(&next); err != nil {
		m.undropped = why
		return errors.Join(why, err)
	}
	m.leader = next.leader
	m.dropped(from, why)
	return nil
}

// dropped tells of it.
func (m *Mirror) dropped(i int, why error) {
	m.mode, m.undropped = alone, nil
	m.unread.Store(nil)
	m.look() // before what is held goes: see direct
	m.forget()
	m.stale.Lock()
	m.stale.regions = regions{}
	m.stale.Unlock()
	m.counts.lost.Add(1)
	m.log.Error("a mirror's member has failed: it goes on with the other", "member", m.config.Members[i].Name, "err", why)
	go m.shut(i, why)
}

// shut closes a member that was dropped, so that it can be taken away.
func (m *Mirror) shut(i int, why error) {
	m.joining.Lock()
	defer m.joining.Unlock()
	m.gate.RLock()
	gone := m.mode == alone && m.other() == i && !m.closing
	m.gate.RUnlock()
	if !gone {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), letGo)
	defer cancel()
	_ = m.slots[i].Exchange(ctx, func(s backstore.Store) (backstore.Store, error) {
		return &absent{why}, s.Close()
	})
}

// takeOver has the other member, with what is held for it, go on alone after the leader
// has failed. It returns why if that one cannot, or is gone.
func (m *Mirror) takeOver(leader int, why error) error {
	m.gate.Lock()
	defer m.gate.Unlock()
	if m.leader != leader {
		return nil // somebody else did
	}
	if m.mode == alone {
		return why
	}
	if !m.whole() {
		return why // the other one lacks something
	}
	o := m.other()
	if err := m.deliver(); err != nil {
		return errors.Join(why, err)
	}
	if err := m.disks[o].flush(); err != nil {
		m.forsake()
		return errors.Join(why, err)
	}
	return m.dropLeader(why)
}

// fail has the background drop the other member.
func (m *Mirror) fail(why error) {
	m.failed.CompareAndSwap(nil, &why)
	m.poke()
}

// Rejoin opens the member that was dropped again, and has it resynchronised; or the leader,
// if it cannot be read. It returns the member's name.
func (m *Mirror) Rejoin(ctx context.Context) (member string, err error) {
	m.joining.Lock()
	defer m.joining.Unlock()
	m.gate.RLock()
	o, lost, closing := m.other(), m.mode == alone, m.closing
	m.gate.RUnlock()
	if !lost && !closing && m.unread.Load() != nil {
		return m.rejoinLeader(ctx)
	}
	if !lost || closing {
		return "", errors.New("mirror: found both members in use, expected one that was dropped")
	}
	member = m.config.Members[o].Name
	err = m.slots[o].Exchange(ctx, func(s backstore.Store) (backstore.Store, error) {
		if err := s.Close(); err != nil {
			m.log.Warn("a mirror's dropped member could not be closed in order", "member", m.config.Members[o].Name, "err", err)
		}
		back, err := m.reopened(o)
		if err != nil {
			return &absent{err}, err
		}
		return back, nil
	})
	if err != nil {
		return member, fmt.Errorf("mirror: member %s: %w", member, err)
	}
	return member, m.join(o)
}

// rejoinLeader opens the leader anew, which could not be read and alone has some data, and
// has the other member get all that they may differ in: what was not flushed may be lost
// there. The caller holds joining.
func (m *Mirror) rejoinLeader(ctx context.Context) (member string, err error) {
	m.gate.RLock()
	leader := m.leader
	m.gate.RUnlock()
	m.map_.Lock()
	known := m.map_.note.media[leader]
	m.map_.Unlock()
	member = m.config.Members[leader].Name
	err = m.slots[leader].Exchange(ctx, func(s backstore.Store) (backstore.Store, error) {
		if err := s.Close(); err != nil {
			m.log.Warn("a mirror's leader could not be closed in order", "member", member, "err", err)
		}
		back, err := m.config.Members[leader].Open()
		switch {
		case err != nil:
		case mediumOf(back) != known:
			err = errors.Join(fmt.Errorf("found another file or device than the one that has the newest data: %w", ErrNotIts), back.Close())
		case back.Info().Size < m.size():
			err = errors.Join(fmt.Errorf("found %d bytes, expected %d: a part of the newest data has gone", back.Info().Size, m.size()), back.Close())
		}
		if err != nil {
			return &absent{err}, err
		}
		return back, nil
	})
	if err != nil {
		return member, fmt.Errorf("mirror: member %s: %w", member, err)
	}
	m.gate.Lock()
	defer m.gate.Unlock()
	m.stale.Lock()
	m.stale.join(&m.map_.note.differ)
	m.stale.Unlock()
	m.undropped = nil
	m.unread.Store(nil)
	m.again.Store(true)
	m.poke()
	return member, nil
}

// reopened opens a member, has it grow to the volume's size, and looks whether it fits.
func (m *Mirror) reopened(i int) (backstore.Store, error) {
	s, err := m.config.Members[i].Open()
	if err != nil {
		return nil, err
	}
	mine, found := m.Info(), s.Info()
	if found.Size < mine.Size { // the volume may have grown meanwhile
		if err = m.lacksFrom(found.Size); err == nil {
			err = backstore.Resize(s, mine.Size)
		}
	}
	switch {
	case err != nil:
		err = fmt.Errorf("found %d bytes, expected %d: %w", found.Size, mine.Size, err)
	case found.BlockSize > mine.BlockSize:
		err = fmt.Errorf("found blocks of %d bytes, expected at most %d: restart the server with it", found.BlockSize, mine.BlockSize)
	case mine.Discard && !(found.Discard && found.DiscardZeroes):
		err = errors.New("it cannot release ranges as the other one does: restart the server with it")
	case found.VolatileCache && !mine.VolatileCache:
		err = errors.New("it has a volatile write cache, and initiators were told that there is none: restart the server with it")
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// lacksFrom makes it stable that a member has nothing from off on, whatever it had there.
func (m *Mirror) lacksFrom(off int64) error {
	m.gate.RLock()
	defer m.gate.RUnlock()
	m.map_.Lock()
	defer m.map_.Unlock()
	next := m.map_.note
	next.differ.span(off, m.size())
	return m.save(&next)
}

// join notes what a member that is back lacks.
func (m *Mirror) join(o int) error {
	m.gate.Lock()
	defer m.gate.Unlock()
	next := m.map_.note
	next.lost[o] = false
	if now := mediumOf(m.slots[o].Content()); now != next.media[o] || now == (medium{}) {
		_, last := m.regionsOf(0, m.size())
		next.differ.fill(last + 1)
		next.media[o] = now
	}
	if err := m.save(&next); err != nil {
		return err
	}
	m.failed.Store(nil)
	m.mode = behind
	m.stale.Lock()
	m.stale.regions = next.differ
	m.stale.Unlock()
	m.look()
	m.log.Info("a mirror's member is back: it is resynchronised", "member", m.config.Members[o].Name, "regions", next.differ.count())
	m.poke()
	return nil
}
