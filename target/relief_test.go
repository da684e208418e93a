package target

import (
	"testing"
	"time"

	"lunar/internal/debt"
)

// ender is an Assistant of which only the end counts.
type ender struct {
	Assistant
	why error
}

func (e *ender) Close(why error, _ bool) { e.why = why }

// TestSlowFetchesAreForborne: what is fetched for the largest holder cannot be taken back,
// so its connection gets the time that connections get, not that of a command.
func TestSlowFetchesAreForborne(t *testing.T) {
	th := holdingThread(t)
	e := new(ender)
	c := &sessionState{thread: th, tasks: newTaskTable(4)}
	o := &Connection{sessionState: c, mover: e, assist: e}
	c.conns = append(c.conns, o)
	slow := &task{conn: o, itt: 1, listed: true, wanted: 1}
	slow.wants[0].claimed = debt.Claim{Since: 1, Bytes: 1 << 20}
	c.tasks.insert(slow)
	for _, at := range []struct {
		after debt.Terms
		ended bool
	}{{urgentTerms, false}, {untakenTerms, true}} {
		c.endStalled(2 + int64(at.after.Time(1<<20)+time.Millisecond))
		if ended := e.why != nil; ended != at.ended {
			t.Errorf("a MiB that is being fetched: ended %v after %v, expected %v", ended, at.after.Time(1<<20), at.ended)
		}
	}
}
