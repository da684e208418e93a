package scsi

import "testing"

// takeAll takes the messages that are there, the last ones first, and those that follow.
func (w *world) takeAll() {
	for more := true; more; {
		more = false
		for _, s := range w.sessions {
			for n := len(s.inbox); n > 0; n = len(s.inbox) {
				m := s.inbox[n-1]
				s.inbox, more = s.inbox[:n-1], true
				m.run()
			}
		}
	}
}

// TestOrderedAskInAnyOrder: two ORDERED commands wait for a SIMPLE one, whichever of
// them comes to its thread first.
func TestOrderedAskInAnyOrder(t *testing.T) {
	w := newWorld(t, []string{"o", "o", "w"})
	w.calm()
	older := w.sessions[2]
	older.take()
	for _, s := range w.sessions[:2] {
		s.take()
	}
	w.takeAll()
	for i, s := range w.sessions[:2] {
		if !s.tasks[0].c.Dormant() {
			t.Errorf("ORDERED command %d runs beside an older one", i)
		}
	}
	w.finish(t)
}

// TestOrderIsKeptBehindTheScheduler: commands that the scheduler holds back when an
// ORDERED one of another session comes keep their own order ahead of it.
func TestOrderIsKeptBehindTheScheduler(t *testing.T) {
	w := newWorld(t, []string{"gOg", "o", ""})
	w.calm()
	held := w.sessions[0]
	for range 3 {
		held.take()
	}
	w.sessions[1].take()
	w.takeAll()
	for _, task := range held.tasks {
		task.gated = false
		w.lu.Execute(&task.c)
	}
	w.takeAll()
	for i, dormant := range []bool{false, true, true} {
		if held.tasks[i].c.Dormant() != dormant {
			t.Errorf("command %d waits: %v", i, !dormant)
		}
	}
	if !w.sessions[1].tasks[0].c.Dormant() {
		t.Error("the ORDERED command runs beside older ones")
	}
	w.finish(t)
}

// finish lets all that is under way end.
func (w *world) finish(t *testing.T) {
	t.Helper()
	for events := w.events(); len(events) > 0; events = w.events() {
		events[0].run()
	}
	if left := w.unended(); left != "" {
		t.Errorf("%s wait for ever", left)
	}
}
