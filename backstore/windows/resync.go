package windows

import (
	"errors"
	"fmt"
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
	changed, since, again := uint64(0), evloop.Monotonic(), int64(0)
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
			if now >= again && !m.resync() {
				again = evloop.Monotonic() + int64(rest)
			}
		case m.due(now):
			if err := m.exchange(); err != nil {
				m.log.Error("a mirror could not exchange the roles of its members", "err", err)
			}
		case now-since > int64(rest):
			m.quieten()
		}
	}
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
func (m *Mirror) quieten() {
	m.gate.Lock()
	defer m.gate.Unlock()
	if m.mode != paired || m.map_.note.differ.empty() {
		return
	}
	m.view.Store(&view{reader: m.leader})
	defer m.look()
	if err := m.settle(); err != nil {
		m.log.Error("a mirror's members could not be made alike", "err", err)
	}
}

// errUnread says that the leader could not be read, so that its region stays as it is.
var errUnread = errors.New("the leader could not be read")

// resync copies what the other member lacks, region by region, until nothing is left or
// something fails. It goes on behind regions that the leader cannot read, and reports
// whether there were none.
func (m *Mirror) resync() (read bool) {
	read = true
	for r, more := m.lacking(0); more; r, more = m.lacking(r + 1) {
		select {
		case <-m.quit:
			return true
		default:
		}
		err := m.copyRegion(r)
		if errors.Is(err, errUnread) {
			if read {
				m.log.Error("a mirror's leader could not be read: its other member stays behind", "member", m.config.Members[m.leader].Name, "err", err)
			}
			read = false
		} else if err != nil {
			return read
		}
	}
	m.caughtUp()
	return read
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
	shift := regionShift(m.info.Size)
	off := r << shift
	n := min(1<<shift, m.info.Size-off)
	mine := m.claims.take(off, n)
	defer m.claims.release(mine)
	m.gate.RLock()
	defer m.gate.RUnlock()
	if m.mode != behind {
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

// extentAt returns how far the range at off is provisioned, or not. A store that cannot
// tell has all of it.
func extentAt(d *disk, off, end int64) (n int64, mapped bool) {
	op := backstore.Op{Kind: backstore.Map, Off: off, Len: end - off}
	if d.do(&op) != nil || op.Len <= 0 {
		return end - off, true
	}
	return op.Len, op.Mapped
}

// caughtUp makes both members stable, who are alike then.
func (m *Mirror) caughtUp() {
	m.gate.Lock()
	defer m.gate.Unlock()
	if m.mode != behind || !m.whole() {
		return
	}
	failed := m.flushBoth()
	if failed[m.other()] != nil {
		if err := m.drop(m.other(), failed[m.other()]); err != nil {
			m.log.Error("a mirror's member has failed and could not be dropped", "err", err)
		}
		return
	}
	next := m.map_.note
	next.differ = regions{}
	if failed[m.leader] != nil || m.save(&next) != nil {
		return // it is tried again
	}
	m.recent = regions{}
	m.mode = paired
	m.hand(m.leader)
	m.look()
	m.log.Info("a mirror's members are alike", "leader", m.config.Members[m.leader].Name)
}
