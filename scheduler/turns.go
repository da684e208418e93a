package scheduler

// Turns shares an event thread where the thread itself is what is scarce, as with
// caches and memory: there a command ends as soon as it has begun, nothing waits in a
// Dispatcher, and a reserved command would wait until all others that came before it
// have run. Whoever is served has turns of Length; after each, who holds a reservation
// token or is of the class Urgent may go first. After weighTurns of them, so may who has
// had less of the thread than whom it interrupts, by weight (start-time fair queueing):
// that costs the total as much as a reservation, but promises no time. So nobody gets
// more than its reservation and its weight by going first.
//
// The time of the thread is charged to initiators: all connections of one count
// together.
type Turns struct {
	length  int64
	over    int64  // when this turn ends
	weigh   int64  // when who has had less by weight may go first
	now     int64  // of the last Due
	serving *Queue // whose work is being done; nil: nobody's
	since   int64  // when what it is to be charged for began
	virtual int64  // the least that one who comes now has had
	stopped *Queue // whom those who go first interrupt
}

// weighTurns is how many turns come between two looks at weights.
const weighTurns = 5

// usage is what an initiator has had of a thread: ns, divided by its weight.
type usage struct{ had int64 }

// Length returns a turn's length in ns; 0: nobody goes before others.
func (t *Turns) Length() int64 { return t.length }

// SetLength changes it.
func (t *Turns) SetLength(ns int64) { t.length = ns }

// Begin starts a pass of the thread, which has done nothing for anybody since End.
func (t *Turns) Begin(now int64) { t.serving, t.stopped, t.over = nil, nil, now+t.length }

// End ends the pass.
func (t *Turns) End(now int64) { t.Serve(nil, now) }

// Serve tells whose work the thread does from now on; nil: nobody's.
func (t *Turns) Serve(q *Queue, now int64) {
	t.charge(now)
	t.serving = q
	if q != nil {
		q.usage.had = max(q.usage.had, t.virtual)
	}
}

// Serving is whose work the thread does.
func (t *Turns) Serving() *Queue { return t.serving }

// charge charges who is served for the time that it has taken.
func (t *Turns) charge(now int64) {
	if q := t.serving; q != nil {
		q.usage.had += max(0, now-t.since) / q.share()
	}
	t.since = now
}

// Due reports whether whoever is served has had a turn. Then others may go first, until
// Resumed.
func (t *Turns) Due(now int64) bool {
	if now < t.over {
		return false
	}
	t.charge(now)
	t.now = now
	t.stopped = t.serving
	if t.serving != nil {
		t.virtual = max(t.virtual, t.serving.usage.had-t.length/t.serving.share())
	}
	return true
}

// Resumed begins the next turn of whom others have interrupted.
func (t *Turns) Resumed(now int64) {
	t.Serve(t.stopped, now)
	t.stopped, t.over = nil, now+t.length
	if t.now >= t.weigh {
		t.weigh = now + weighTurns*t.length
	}
}

// Prior reports whether a queue's commands go before what is being done.
func (t *Turns) Prior(q *Queue) bool {
	switch {
	case q.class == Urgent || q.reserved() || q.due(t.now):
		return true
	case t.now < t.weigh || t.stopped == nil || t.stopped.usage == q.usage:
		return false
	}
	return max(q.usage.had, t.virtual) < t.stopped.usage.had
}

// due reports whether a reservation token has become due since the last Tick.
func (q *Queue) due(now int64) bool {
	due := false
	if q.promised {
		for i := range 1 + len(q.inner) {
			due = q.engineAt(i).Due(now) || due
		}
	}
	return due
}

// share is what a queue's time counts by.
func (q *Queue) share() int64 {
	if class := int(classPlace[q.class] - inHigh); class >= 0 {
		return q.weight * ClassWeights[class]
	}
	return q.weight
}
