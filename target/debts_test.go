package target

import (
	"testing"
	"time"
)

// slowMover has a peer that always has something to take.
type slowMover struct {
	Datamover
	taken uint64
}

func (m *slowMover) Owed() Owed { return Owed{Untaken: true, Taken: m.taken} }

// The largest holder may have a slow link, of which several connections share what there
// is; who takes a little now and then has to give way.
func TestSlowLinkIsNoHoarder(t *testing.T) {
	const nop = 30 * time.Second
	for rate, late := range map[uint64]bool{0: true, 64 << 10: true, 200e3: false, 1e6: false} {
		m := &slowMover{}
		c := &Connection{mover: m}
		for s := range int64(600) {
			c.late(s*int64(time.Second)+1, (&Session{settings: &Settings{NOPInterval: nop}}).terms())
			if c.debts.urgentlyLate {
				break
			}
			m.taken += rate
		}
		if c.debts.urgentlyLate != late {
			t.Errorf("%d bytes a second: found late %v", rate, !late)
		}
	}
}
