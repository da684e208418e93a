package windows

import (
	"fmt"
	"sync/atomic"

	"lunar/backstore"
)

type mirrorCounts struct{ changed, exchanged, copied, mended, lost atomic.Uint64 }

// MirrorStatus is what a Mirror tells of itself.
type MirrorStatus struct {
	Leader    string // the member that takes the writes
	Missing   string // the member that was dropped; "" for none
	Behind    int    // regions that a member lacks
	Held      int64  // bytes that a member gets later
	Exchanged uint64 // how often the roles were exchanged
	Copied    uint64 // regions that were copied to a member that lacked them
	Mended    uint64 // reads that the other member served after an error
	Lost      uint64 // how often a member was dropped
	Differ    int64  // regions that differed when the members were compared last, and were not copied since
}

// Status returns what the Mirror is doing. It may wait for an exchange of roles.
func (m *Mirror) Status() MirrorStatus {
	m.gate.RLock()
	s := MirrorStatus{
		Leader:    m.config.Members[m.leader].Name,
		Exchanged: m.counts.exchanged.Load(), Copied: m.counts.copied.Load(), Mended: m.counts.mended.Load(), Lost: m.counts.lost.Load(), Differ: int64(m.differing.count()),
	}
	if m.mode == alone {
		s.Missing = m.config.Members[m.other()].Name
	}
	m.gate.RUnlock()
	m.stale.Lock()
	s.Behind = m.stale.count()
	m.stale.Unlock()
	m.held.RLock()
	s.Held = m.held.used
	m.held.RUnlock()
	return s
}

// Troubles implements backstore.Patient.
func (m *Mirror) Troubles() (out []backstore.Trouble) {
	if text := m.trouble.Load(); text != nil {
		out = append(out, backstore.Trouble{Failed: true, What: *text})
	}
	if t := m.unread.Load(); t != nil {
		out = append(out, *t)
	}
	if n := m.differing.count(); n > 0 {
		out = append(out, backstore.Trouble{What: fmt.Sprintf("the mirror's members differed in %d regions when they were compared last, and nobody knows which one is right", n)})
	}
	missing := m.missing.Load()
	m.stale.Lock()
	lacks := m.stale.count()
	m.stale.Unlock()
	if missing != nil {
		out = append(out, backstore.Trouble{What: fmt.Sprintf("the mirror goes on without its member %s: mend it, then run lunar resync %s", *missing, m.config.Name)})
	} else if lacks > 0 {
		out = append(out, backstore.Trouble{What: fmt.Sprintf("a member of the mirror is resynchronised: %d regions are left", lacks)})
	}
	return append(out, m.ofMembers(backstore.Patient.Troubles)...)
}

// Examine implements backstore.Patient.
func (m *Mirror) Examine() []backstore.Trouble { return m.ofMembers(backstore.Patient.Examine) }

// ofMembers collects what the members say. The Mirror has failed only if all have.
func (m *Mirror) ofMembers(ask func(backstore.Patient) []backstore.Trouble) (out []backstore.Trouble) {
	failed := 0
	for i, slot := range m.slots {
		if _, missing := slot.Content().(*absent); missing || slot.Empty() {
			failed++
			continue
		}
		p, ok := slot.Content().(backstore.Patient)
		if !ok {
			continue
		}
		for _, t := range ask(p) {
			if t.Failed {
				failed++
			}
			out = append(out, backstore.Trouble{What: "member " + m.config.Members[i].Name + ": " + t.What})
		}
	}
	if failed >= len(m.slots) {
		for i := range out {
			out[i].Failed = true
		}
	}
	return out
}
