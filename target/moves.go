package target

import (
	"lunar/internal/evloop"
	"lunar/target/scsi"
)

// What is moved within the server (copies, WRITE SAME, VERIFY, what zeroes, releases and
// sanitizes) costs next to nothing to ask for, and no transfer bounds it. A store in
// memory does it at once, on the event thread. So all commands together move so much of
// it in one pass, whoever sent them and however many there are, and go on in a line, each
// for a turn. A thread with nothing else to do begins the next pass at once.
const (
	// passWithin is how many bytes are moved in one pass: as long as a few reads take.
	passWithin = 256 << 10
	// leastWithin is what an operation counts at least.
	leastWithin = 4 << 10
)

// moves is an event thread's account of it. It belongs to the thread.
type moves struct {
	loop    *evloop.Loop
	pass    int64 // the loop's time when it began
	left    int64 // bytes that are left of it; negative: taken in advance
	waiting []scsi.Task
	serving bool // a task has its turn
	due     bool // Run is queued
}

// take asks for n bytes. They may be moved now, or t runs when it has its turn.
func (m *moves) take(n int64, t scsi.Task) bool {
	m.begin()
	if m.left > 0 && (m.serving || len(m.waiting) == 0) {
		m.left -= max(n, leastWithin)
		return true
	}
	m.waiting = append(m.waiting, t)
	m.again()
	return false
}

// begin notes that a pass has begun.
func (m *moves) begin() {
	if now := m.loop.Now(); now != m.pass {
		m.pass, m.left = now, min(m.left, 0)+passWithin
	}
}

func (m *moves) again() {
	if !m.due {
		m.due = true
		m.loop.Again(m)
	}
}

// Run implements evloop.Task: it gives turns to those that have waited longest.
func (m *moves) Run() {
	m.due = false
	m.begin()
	served := 0
	for most := len(m.waiting); served < most && m.left > 0; {
		t := m.waiting[served]
		m.waiting[served] = nil
		served++
		m.serving = true
		t.Run()
		m.serving = false
		m.loop.Yield()
	}
	left := copy(m.waiting, m.waiting[served:])
	clear(m.waiting[left:])
	m.waiting = m.waiting[:left]
	if left > 0 {
		m.again()
	}
}
