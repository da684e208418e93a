package evloop

import "time"

// Timer calls Fire on the loop's thread. It is embedded in the object that it
// serves and re-armed without allocating. The zero Timer with Fire set is ready.
type Timer struct {
	// Fire is called once per Arm. It may arm the Timer again.
	Fire func()

	at    int64
	seq   uint64 // order of arming, for equal times
	place int    // index in the heap plus one; 0 is disarmed
}

// Armed reports whether the Timer is waiting to fire.
func (t *Timer) Armed() bool { return t.place > 0 }

// Arm makes t fire once, in the first pass that begins at least after from the
// current pass's Now. Arming an armed Timer moves it. Times in the past fire in
// the next pass. Timers with equal times fire in the order of arming.
func (l *Loop) Arm(t *Timer, after time.Duration) {
	l.assertThread("Arm")
	l.timers.arm(t, l.now+int64(max(after, 0)))
}

// ArmAt is Arm with a time on the clock of Now.
func (l *Loop) ArmAt(t *Timer, at int64) {
	l.assertThread("ArmAt")
	l.timers.arm(t, max(at, l.now))
}

// Disarm stops t; stopping a Timer that is not armed does nothing.
func (l *Loop) Disarm(t *Timer) {
	l.assertThread("Disarm")
	l.timers.disarm(t)
}

// timerHeap is a binary heap ordered by (at, seq).
type timerHeap struct {
	heap []*Timer
	seq  uint64
}

// next returns the time of the earliest Timer.
func (h *timerHeap) next() (at int64, ok bool) {
	if len(h.heap) == 0 {
		return 0, false
	}
	return h.heap[0].at, true
}

// fire calls every Timer that was due when it began. A Timer armed meanwhile has
// a later seq and a time that is not earlier, so it waits for the next pass.
func (h *timerHeap) fire(now int64) int {
	fired := 0
	for limit := h.seq; len(h.heap) > 0; fired++ {
		t := h.heap[0]
		if t.at > now || t.seq > limit {
			break
		}
		h.disarm(t)
		t.Fire()
	}
	return fired
}

func (h *timerHeap) arm(t *Timer, at int64) {
	h.seq++
	t.at, t.seq = at, h.seq
	if !t.Armed() {
		h.heap = append(h.heap, t)
		t.place = len(h.heap)
	}
	h.restore(t.place - 1)
}

func (h *timerHeap) disarm(t *Timer) {
	if !t.Armed() {
		return
	}
	i, end := t.place-1, len(h.heap)-1
	h.swap(i, end)
	h.heap[end] = nil
	h.heap = h.heap[:end]
	t.place = 0
	if i < end {
		h.restore(i)
	}
}

// restore moves the Timer at i to where the order wants it.
func (h *timerHeap) restore(i int) {
	for i > 0 && h.less(i, (i-1)/2) {
		h.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
	for {
		child := 2*i + 1
		if child+1 < len(h.heap) && h.less(child+1, child) {
			child++
		}
		if child >= len(h.heap) || !h.less(child, i) {
			return
		}
		h.swap(i, child)
		i = child
	}
}

func (h *timerHeap) less(i, j int) bool {
	a, b := h.heap[i], h.heap[j]
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}

func (h *timerHeap) swap(i, j int) {
	h.heap[i], h.heap[j] = h.heap[j], h.heap[i]
	h.heap[i].place, h.heap[j].place = i+1, j+1
}
