package evloop

import "time"

// retrySubmit bounds the sleep while the kernel did not take all ring requests.
const retrySubmit = time.Millisecond

// wait fetches the events of a pass and notes the time. It blocks only when there is
// nothing to do, and only after a look that does not involve the Go scheduler.
func (l *Loop) wait() (n int) {
	n = l.poll.check()
	l.now = Monotonic() // once, for the end of one pass and the begin of the next
	if l.watch != nil {
		l.watch.Lap(l.now)
	}
	if n > 0 || l.busy() {
		return n
	}
	timeout := l.patience()
	if timeout == 0 {
		return 0
	}
	if !l.sourcesSleep() {
		return 0
	}
	defer l.rises()
	if !l.liesDown() {
		return 0
	}
	l.stats.sleeps.Add(1)
	n = l.poll.block(timeout)
	l.now = Monotonic()
	return n
}

// liesDown has producers and the ring wake the thread from now on, and reports
// whether there is nothing from before.
func (l *Loop) liesDown() bool {
	l.wake.asleep.Store(true)
	if l.ring != nil {
		l.ring.Wake(true)
		if l.ring.Ready() {
			return false
		}
	}
	return l.inbox.empty() && !l.stopping.Load()
}

// rises undoes liesDown: the thread looks for itself.
func (l *Loop) rises() {
	l.wake.asleep.Store(false)
	if l.ring != nil {
		l.ring.Wake(false)
	}
}

// busy reports whether the pass has work other than events. Pass-end tasks are
// there only before the first pass, from the loop's creator.
func (l *Loop) busy() bool {
	return l.again.due() || len(l.order.waiting) > 0 || !l.inbox.empty() || len(l.end) > 0 || l.ring != nil && l.ring.Ready()
}

// patience returns how long the loop may sleep: 0 not at all, negative for ever.
func (l *Loop) patience() time.Duration {
	if l.idle == 0 {
		l.idles(l.now)
	}
	timeout := l.spin.wait(l.now)
	if timeout == 0 {
		return 0
	}
	if at, ok := l.timers.next(); ok {
		due := time.Duration(max(at-l.now, 0))
		if timeout < 0 || due < timeout {
			timeout = due
		}
	}
	if l.ring != nil && l.ring.Unsubmitted() && (timeout < 0 || timeout > retrySubmit) {
		timeout = retrySubmit
	}
	return timeout
}
