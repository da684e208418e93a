package windows

import (
	"cmp"
	"errors"
	"sync"

	"lunar/internal/evloop"
)

// due reports whether the other member is to work now, by the windows.
func (m *Mirror) due(now int64) bool {
	m.held.RLock()
	waits := m.held.count > 0
	m.held.RUnlock()
	if !m.whole() {
		return true // it is to be copied
	}
	if !waits {
		return false // nobody has to work
	}
	m.gate.RLock()
	o := m.other()
	m.gate.RUnlock()
	m.windows.Lock()
	defer m.windows.Unlock()
	m.windows.pair.Advance(now)
	return m.windows.pair.Work(now) == o
}

// whole reports whether the other member lacks nothing but what is held for it.
func (m *Mirror) whole() bool {
	m.stale.Lock()
	defer m.stale.Unlock()
	return m.stale.empty()
}

// exchange has the other member take what is held for it, and lead from then on. Changes
// wait meanwhile, and reads go to the member that has led.
func (m *Mirror) exchange() error {
	m.gate.Lock()
	defer m.gate.Unlock()
	if m.mode != paired {
		return nil
	}
	from, to := m.leader, m.other()
	m.view.Store(&view{reader: from})
	defer m.look()
	m.hand(to)
	if err := m.deliver(); err != nil {
		return m.drop(to, err)
	}
	if m.whole() {
		return m.lead(from, to)
	}
	m.mode = behind // what is lacking is copied first
	m.hand(from)
	return nil
}

// lead makes both members stable and has the other one lead.
func (m *Mirror) lead(from, to int) error {
	if whole, err := m.flushBoth(); !whole {
		return err
	}
	next := m.map_.note
	next.leader, next.differ = to, m.recent // they will be written again
	if err := m.save(&next); err != nil {
		m.hand(from)
		return nil // both have the same; who leads stays
	}
	m.leader, m.recent = to, regions{}
	m.counts.exchanged.Add(1)
	return nil
}

// hand tells the windows which member works.
func (m *Mirror) hand(to int) {
	m.windows.Lock()
	defer m.windows.Unlock()
	m.windows.pair.Hand(to, evloop.Monotonic())
}

// flushBoth makes both members stable, who are alike. One that cannot be flushed is dropped, and
// whole is false: the next flush of it that ends well tells nothing of what it lost with this one.
// An error says that it could not be dropped. The caller holds the gate alone.
func (m *Mirror) flushBoth() (whole bool, err error) {
	var both sync.WaitGroup
	var failed [2]error
	for i, d := range m.disks {
		both.Go(func() { failed[i] = d.flush() })
	}
	both.Wait()
	l, o := m.leader, m.other()
	failed[l] = cmp.Or(m.undropped, failed[l])
	switch {
	case failed[l] == nil && failed[o] == nil:
		return true, nil
	case failed[o] == nil:
		return false, m.dropLeader(failed[l])
	case failed[l] != nil:
		err = errors.Join(failed[:]...) // nobody is dropped
	default:
		err = m.drop(o, failed[o])
	}
	if err != nil {
		m.forsake()
	}
	return false, err
}

// forsake has the other member, for which nothing is held, get all again that it may have lost with
// a flush that has failed. The caller holds the gate alone.
func (m *Mirror) forsake() {
	m.mode = behind
	m.stale.Lock()
	m.stale.join(&m.map_.note.differ)
	m.stale.Unlock()
	m.look()
	m.poke()
}

// deliverers is how many writes of what is held are under way.
const deliverers = 8

// deliver writes what is held, in the order of its place.
func (m *Mirror) deliver() error {
	m.held.RLock()
	all := join(m.held.all())
	m.held.RUnlock()
	d := m.disks[m.other()]
	var next struct {
		sync.Mutex
		i      int
		failed error
	}
	var group sync.WaitGroup
	for range min(deliverers, len(all)) {
		group.Go(func() {
			b := m.memory.take()
			defer m.memory.give(b)
			for {
				next.Lock()
				i := next.i
				next.i++
				stop := next.failed != nil || i >= len(all)
				next.Unlock()
				if stop {
					return
				}
				if err := m.held.write(d, all[i], b); err != nil {
					next.Lock()
					next.failed = err
					next.Unlock()
				}
			}
		})
	}
	group.Wait()
	if next.failed == nil {
		m.forget()
	}
	return next.failed
}

// forget drops what is held.
func (m *Mirror) forget() {
	m.held.Lock()
	m.held.clear()
	m.held.used = 0
	m.held.Unlock()
	m.windows.Lock()
	for i := range 2 {
		s := m.windows.pair.Set(i)
		s.Flushed(s.Held())
	}
	m.windows.Unlock()
}

// join makes runs of at most a chunk of extents that lie side by side: each run is one
// write.
func join(all []extent) (runs [][]extent) {
	for _, e := range all {
		for e.at >= 0 && e.n > chunk { // a run's memory has no more
			runs = append(runs, []extent{e.part(e.off, e.off+chunk)})
			e = e.part(e.off+chunk, e.end())
		}
		if k := len(runs) - 1; k >= 0 && e.at >= 0 {
			last := runs[k][len(runs[k])-1]
			if last.at >= 0 && last.end() == e.off && e.end()-runs[k][0].off <= chunk {
				runs[k] = append(runs[k], e)
				continue
			}
		}
		runs = append(runs, []extent{e})
	}
	return runs
}

// write writes a run.
func (h *held) write(d *disk, run []extent, b []byte) error {
	if run[0].at < 0 {
		return d.zero(run[0])
	}
	n := 0
	for _, e := range run {
		n += copy(b[n:], h.memory.Bytes()[e.at:][:e.n])
	}
	return d.write(run[0].off, b[:n], false)
}

// settle leaves both members alike and stable. The caller holds the gate alone.
func (m *Mirror) settle() error {
	if m.mode == alone {
		return m.disks[m.leader].flush()
	}
	if m.mode == paired {
		if err := m.deliver(); err != nil {
			return errors.Join(m.drop(m.other(), err), m.disks[m.leader].flush())
		}
	}
	if m.mode == behind || !m.whole() { // the map says what may differ
		return errors.Join(m.disks[m.leader].flush(), m.disks[m.other()].flush())
	}
	if whole, err := m.flushBoth(); !whole {
		return err
	}
	next := m.map_.note
	next.differ = regions{}
	if err := m.save(&next); err != nil {
		return err
	}
	m.recent = regions{}
	return nil
}
