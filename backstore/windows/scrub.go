package windows

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"lunar/internal/evloop"
)

// Scrubbed is what a comparison of a Mirror's members has found.
type Scrubbed struct {
	Compared int64   // bytes
	Mended   int64   // bytes that one member could not read and the other has given it
	Differs  []int64 // offsets of regions that differ, in bytes: at most differsMost of them
	Regions  int     // that differ
}

// differsMost bounds the regions that are named.
const differsMost = 32

// scrubRest is for how long a scrub rests after each piece, as a multiple of what that took.
const scrubRest = 3

// errNotPaired says that there are not two members to compare.
var errNotPaired = errors.New("found one member, expected two: take the other one back first (lunar resync)")

// Scrub compares the members, piece by piece, with rests between: initiators go first. What
// one of them cannot read gets from the other. Where both can be read and differ nobody
// knows which is right, and it is told alone. done hears how many bytes were compared.
func (m *Mirror) Scrub(ctx context.Context, done func(bytes int64)) (s Scrubbed, err error) {
	if !m.scrubbing.TryLock() {
		return s, errors.New("they are being compared already, or the volume is closed")
	}
	defer m.scrubbing.Unlock()
	mine, others := m.memory.take(), m.memory.take()
	defer m.memory.give(mine)
	defer m.memory.give(others)
	last := int64(-1)
	for off := int64(0); off < m.size(); {
		began := evloop.Monotonic()
		n, verdict, err := m.compare(off, mine, others)
		switch {
		case errors.Is(err, errAgain): // members are made alike
			if err := m.rest(ctx, m.config.Window); err != nil {
				return s, err
			}
			continue
		case err != nil:
			return s, err
		}
		if region := off &^ (1<<regionShift(m.size()) - 1); verdict == differing && region != last {
			last = region
			s.Regions++
			if len(s.Differs) < differsMost {
				s.Differs = append(s.Differs, region)
			}
		}
		if verdict == mended {
			s.Mended += n
		}
		off += n
		s.Compared += n
		done(s.Compared)
		if err := m.rest(ctx, time.Duration(scrubRest*(evloop.Monotonic()-began))); err != nil {
			return s, err
		}
	}
	if s.Regions > 0 {
		m.log.Error("a mirror's members differ: nobody knows which one is right", "regions", s.Regions, "first", s.Differs[0])
	}
	return s, nil
}

// rest waits, until ctx or the store ends.
func (m *Mirror) rest(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-m.quit:
		return errClosed
	case <-t.C:
		return nil
	}
}

// verdict is about a piece of both members.
type verdict uint8

const (
	same verdict = iota
	differing
	mended // one could not be read
)

// compare compares a piece at off, of n bytes, with what is held for the other member. Nobody
// changes it meanwhile. errAgain: not now.
func (m *Mirror) compare(off int64, mine, others []byte) (n int64, v verdict, err error) {
	n = min(chunk, m.size()-off)
	claim := m.claims.take(off, n)
	defer m.claims.release(claim)
	m.gate.RLock()
	defer m.gate.RUnlock()
	switch {
	case m.mode == alone:
		return 0, same, errNotPaired
	case m.mode == behind, n <= 0, off+n > m.size(): // it becomes smaller
		return 0, same, errAgain
	}
	mine, others = mine[:n], others[:n]
	leader, other := m.disks[m.leader], m.disks[m.other()]
	bad, worse := leader.read(off, mine), other.read(off, others)
	gaps := m.held.fill(others, off)
	switch {
	case bad == nil && worse == nil:
		if !bytes.Equal(mine, others) {
			v = differing
		}
		m.differing.compared(off, m.shift, v == differing)
		return n, v, nil
	case worse != nil && bad == nil: // as after a read of an initiator
		if err := m.mark(off, n); err != nil {
			return 0, same, err
		}
		m.lacks(off, n)
	case worse == nil || len(gaps) == 0:
		if err := leader.write(off, others, false); err != nil {
			return 0, same, fmt.Errorf("member %s cannot be read at byte %d, and not be mended: %w", m.config.Members[m.leader].Name, off, err)
		}
	default:
		return 0, same, fmt.Errorf("both members cannot be read at byte %d: %w", off, errors.Join(bad, worse))
	}
	m.differing.compared(off, m.shift, false)
	m.counts.mended.Add(1)
	m.log.Warn("a mirror's member could not be read: it gets what the other one has", "byte", off, "bytes", n, "err", errors.Join(bad, worse))
	return n, mended, nil
}
