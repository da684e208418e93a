package windows

import (
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
			m.resync()
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

// resync copies what the other member lacks, region by region, until nothing is left or
// something fails.
func (m *Mirror) resync() {
	for {
		select {
		case <-m.quit:
			return
		default:
		}
		r, any := m.lacking()
		if !any {
			m.caughtUp()
			return
		}
		if !m.copyRegion(r) {
			return
		}
	}
}

// lacking returns a region that the other member lacks.
func (m *Mirror) lacking() (r int64, any bool) {
	m.stale.Lock()
	defer m.stale.Unlock()
	for i, w := range m.stale.regions {
		if w != 0 {
			return int64(i*64 + bits.TrailingZeros64(w)), true
		}
	}
	return 0, false
}

// copyRegion has the other member get a region from the leader. Changes there wait.
func (m *Mirror) copyRegion(r int64) bool {
	shift := regionShift(m.info.Size)
	off := r << shift
	n := min(1<<shift, m.info.Size-off)
	mine := m.claims.take(off, n)
	defer m.claims.release(mine)
	m.gate.RLock()
	defer m.gate.RUnlock()
	if m.mode != behind {
		return false
	}
	b := m.memory.take()
	defer m.memory.give(b)
	if err := m.copyRange(off, off+n, b); err != nil {
		return false
	}
	m.stale.Lock()
	m.stale.drop(r)
	m.stale.Unlock()
	m.counts.copied.Add(1)
	return true
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
				m.log.Error("a mirror's leader could not be read: its other member stays behind", "member", m.config.Members[m.leader].Name, "byte", off, "err", err)
				return err
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
