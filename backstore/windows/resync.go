package windows

import (
	"errors"
	"fmt"
	"log/slog"
	"math/bits"
	"time"

	"lunar/backstore"
	"lunar/internal/evloop"
)

// rest is after how long without changes both members are made alike.
const rest = 5 * time.Second

// run is the background: it exchanges roles, copies what a member lacks and drops one
// that has failed.
func (m *Mirror) run() {
	tick := time.NewTicker(max(m.config.Window/8, time.Millisecond))
	defer tick.Stop()
	changed, since := uint64(0), evloop.Monotonic()
	var again patience
	var exchanging, settling complaint
	for {
		select {
		case <-m.quit:
			return
		case <-tick.C:
		case <-m.wake:
		}
		now := evloop.Monotonic()
		if n := m.counts.changed.Load(); n != changed {
			changed, since = n, now
		}
		switch {
		case m.failed.Load() != nil:
			m.dropFailed()
		case m.lags():
			if m.again.Swap(false) {
				again = patience{}
			}
			if again.due(now) {
				again.tell(m.resync(), evloop.Monotonic())
			}
		case m.due(now):
			exchanging.tell(m.log, "a mirror could not exchange the roles of its members", m.exchange())
		case now-since > int64(rest):
			settling.tell(m.log, "a mirror's members could not be made alike", m.quieten())
		}
	}
}

// patience says when to try again: the more seldom, the more often it was of no use.
type patience struct{ wait, at int64 }

// patienceMost bounds how long it waits.
const patienceMost = 5 * time.Minute

func (p *patience) due(now int64) bool { return now >= p.at }

// tell tells what has come of it.
func (p *patience) tell(well bool, now int64) {
	if well {
		*p = patience{}
		return
	}
	p.wait = min(max(2*p.wait, int64(rest)), int64(patienceMost))
	p.at = now + p.wait
}

// lags reports whether the other member lacks something.
func (m *Mirror) lags() bool {
	m.gate.RLock()
	defer m.gate.RUnlock()
	return m.mode == behind
}

// dropFailed drops the other member after it has failed a write.
func (m *Mirror) dropFailed() {
	m.gate.Lock()
	defer m.gate.Unlock()
	why := m.failed.Swap(nil)
	if why == nil || m.mode == alone {
		return
	}
	if err := m.drop(m.other(), *why); err != nil {
		m.failed.Store(why)
	}
}

// quieten makes both members alike if they may differ, so that a start has nothing to do.
func (m *Mirror) quieten() error {
	m.gate.Lock()
	defer m.gate.Unlock()
	if m.mode != paired || m.map_.note.differ.empty() {
		return nil
	}
	m.view.Store(&view{reader: m.leader})
	defer m.look()
	return m.settle()
}

// complaint is why something fails that is tried again and again: it is logged once.
type complaint string

func (c *complaint) tell(log *slog.Logger, what string, err error) {
	if err == nil {
		*c = ""
		return
	}
	if text := complaint(err.Error()); text != *c {
		*c = text
		log.Error(what, "err", err)
	}
}

// errUnread says that the leader could not be read, so that its region stays as it is.
var errUnread = errors.New("the leader could not be read")

// resync copies what the other member lacks, region by region, until nothing is left or
// something fails. It goes on behind regions that the leader cannot read, and reports
// whether there were none.
func (m *Mirror) resync() (read bool) {
	var unread error
	for r, more := m.lacking(0); more; r, more = m.lacking(r + 1) {
		select {
		case <-m.quit:
			return true
		default:
		}
		err := m.copyRegion(r)
		if errors.Is(err, errUnread) {
			unread = err
		} else if err != nil {
			return unread == nil
		}
	}
	m.tellUnread(unread)
	return unread == nil && m.caughtUp()
}

// tellUnread tells that the leader has data that cannot be copied, or that it has none.
func (m *Mirror) tellUnread(err error) {
	if err == nil {
		m.unread.Store(nil)
		return
	}
	m.gate.RLock()
	leader := m.leader
	dead := m.dead()
	m.gate.RUnlock()
	name := m.config.Members[leader].Name
	t := backstore.Trouble{Failed: dead, What: fmt.Sprintf("the mirror's member %s cannot be read, and alone has data that the other one lacks: mend it, then run lunar resync %s", name, m.config.Name)}
	if m.unread.Swap(&t) == nil {
		m.log.Error("a mirror's leader could not be read: its other member stays behind", "member", name, "err", err)
	}
}

// dead reports whether nothing of the leader can be read. The caller holds the gate.
func (m *Mirror) dead() bool {
	b := m.memory.take()
	defer m.memory.give(b)
	for _, off := range []int64{0, m.size() / 2 / page * page, (m.size() - 1) / page * page} {
		if m.disks[m.leader].read(off, b[:min(page, m.size()-off)]) == nil {
			return false
		}
	}
	return true
}

// lacking returns the first region, of those from one on, that the other member lacks.
func (m *Mirror) lacking(from int64) (r int64, more bool) {
	m.stale.Lock()
	defer m.stale.Unlock()
	for r = from; r < regionsMost; r++ {
		if w := m.stale.regions[r/64] >> (r % 64); w != 0 {
			return r + int64(bits.TrailingZeros64(w)), true
		}
		r |= 63
	}
	return 0, false
}

// copyRegion has the other member get a region from the leader. Changes there wait.
func (m *Mirror) copyRegion(r int64) error {
	m.gate.RLock()
	size, off := m.size(), r<<m.shift
	n := min(1<<m.shift, size-off)
	m.gate.RUnlock()
	mine := m.claims.take(off, n)
	defer m.claims.release(mine)
	m.gate.RLock()
	defer m.gate.RUnlock()
	if m.mode != behind || m.size() != size {
		return errAgain
	}
	b := m.memory.take()
	defer m.memory.give(b)
	if err := m.copyRange(off, off+n, b); err != nil {
		return err
	}
	m.stale.Lock()
	m.stale.drop(r)
	m.stale.Unlock()
	if m.differing.copied(r) {
		m.log.Info("a mirror's members do not differ any more")
	}
	m.counts.copied.Add(1)
	return nil
}

func (m *Mirror) copyRange(off, end int64, b []byte) error {
	from, to := m.disks[m.leader], m.disks[m.other()]
	for off < end {
		n, mapped := extentAt(from, off, end)
		var err error
		switch {
		case !mapped:
			if there, too := extentAt(to, off, end); too || there < n {
				err = to.zero(extent{off: off, n: n, at: discarded})
			}
		default:
			n = min(n, chunk)
			if err := from.read(off, b[:n]); err != nil {
				return fmt.Errorf("%w: byte %d: %w", errUnread, off, err)
			}
			err = to.write(off, b[:n], false)
		}
		if err != nil {
			m.fail(err)
			return err
		}
		off += n
	}
	return nil
}

// caughtUp makes both members stable, who are alike then. It reports whether there is
// nothing to be tried again.
func (m *Mirror) caughtUp() bool {
	m.gate.Lock()
	defer m.gate.Unlock()
	if m.mode != behind || !m.whole() {
		return true
	}
	if whole, err := m.flushBoth(); !whole {
		if err != nil {
			m.log.Error("a mirror's member has failed and could not be dropped", "err", err)
		}
		return err == nil
	}
	next := m.map_.note
	next.differ = regions{}
	if m.save(&next) != nil {
		return false
	}
	m.recent = regions{}
	m.mode = paired
	m.hand(m.leader)
	m.look()
	m.log.Info("a mirror's members are alike", "leader", m.config.Members[m.leader].Name)
	return true
}
