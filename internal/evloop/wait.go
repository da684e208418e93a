package evloop

import "time"

// retrySubmit bounds the sleep while the kernel did not take all ring requests.
const retrySubmit = time.Millisecond

// wait fetches the events of a pass. It blocks only when there is nothing to do,
// and only after a look that does not involve the Go scheduler.
func (l *Loop) wait() int {
	if n := l.poll.check(); n > 0 || l.busy() {
		return n
	}
	timeout := l.patience()
	if timeout == 0 {
		return 0
	}
	if !l.sourcesSleep() {
		return 0
	}
	l.wake.asleep.Store(true)
	if !l.inbox.empty() || l.stopping.Load() {
		l.wake.asleep.Store(false)
		return 0
	}
	l.stats.sleeps.Add(1)
	n := l.poll.block(timeout)
	l.wake.asleep.Store(false)
	return n
}

// busy reports whether the pass has work other than events. Pass-end tasks are
// there only before the first pass, from the loop's creator.
func (l *Loop) busy() bool {
	return l.again.due() || len(l.order.waiting) > 0 || !l.inbox.empty() || len(l.end) > 0 || l.ring != nil && l.ring.Ready()
}

// patience returns how long the loop may sleep: 0 not at all, negative for ever.
func (l *Loop) patience() time.Duration {
	now := Monotonic()
	if l.idle == 0 {
		l.idles(now)
	}
	if l.spin.pays(now-l.idle, now) {
		return 0
	}
	timeout := time.Duration(-1)
	if at, ok := l.timers.next(); ok {
		timeout = time.Duration(max(at-now, 0))
	}
	if l.ring != nil && l.ring.Unsubmitted() && (timeout < 0 || timeout > retrySubmit) {
		timeout = retrySubmit
	}
	return timeout
}
