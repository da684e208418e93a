package scheduler

// Thread learns what an event thread can do. It is a server beside the devices: a command
// needs both, and where a device is faster, or memory answers, the thread is what is full.
// What it can do is learnt from intervals in which it had hardly a pause; in others it
// takes longer for each command, because it wakes up for few. The zero value knows nothing.
type Thread struct {
	begun      int64 // ns
	done, busy int64 // totals then
	capacity   int64
	served     int64
	load       int
}

// ThreadStatus is what an event thread can do and does, in tokens per second of the mix of
// commands that it has had.
type ThreadStatus struct {
	Name     string
	Capacity int64 // 0: not known, it was never full
	Served   int64 // in the last second
	Load     int   // percent of that in which it had something to do
}

// Full reports whether the thread had hardly a pause.
func (s ThreadStatus) Full() bool { return s.Load >= threadFull }

const (
	threadInterval = 1e9 // ns
	threadFull     = 90  // percent
	// threadGain is what part of the way the capacity goes to what an interval tells.
	threadGain = 4
)

// Observe takes in how many tokens the thread has served at now, and for how many ns it
// has had something to do, both in all since it began.
func (t *Thread) Observe(now, done, busy int64) {
	elapsed := now - t.begun
	if elapsed < threadInterval {
		return
	}
	tokens, work := done-t.done, busy-t.busy
	t.begun, t.done, t.busy = now, done, busy
	if elapsed > 2*threadInterval || tokens < 0 || work < 0 {
		return // the first, or there were no rules meanwhile, and so no tokens
	}
	t.served = int64(float64(tokens) * 1e9 / float64(elapsed))
	t.load = int(min(100, 100*work/elapsed))
	switch {
	case t.load >= threadFull && t.capacity > 0:
		t.capacity += (int64(float64(tokens)*1e9/float64(work)) - t.capacity) / threadGain
	case t.load >= threadFull:
		t.capacity = int64(float64(tokens) * 1e9 / float64(work))
	case t.capacity > 0:
		t.capacity = max(t.capacity, t.served)
	}
}

// Status says what was learnt.
func (t *Thread) Status(name string) ThreadStatus {
	return ThreadStatus{Name: name, Capacity: t.capacity, Served: t.served, Load: t.load}
}
