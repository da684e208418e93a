package target

import "lunar/internal/buf"

// get returns a buffer of n bytes that counts in the session's budget until its
// last release, also when that is the transport's; nil when there is none for the
// session now. Who comes while others of its session wait has to wait behind them.
func (c *sessionState) get(n int) *buf.Ref {
	if !c.affords(n) {
		return nil
	}
	return c.thread.quotas.get(&c.quota, n)
}

// mayTake reports whether the session may use n bytes more now of what all share.
func (c *sessionState) mayTake(n int) bool {
	return c.affords(n) && c.thread.quotas.allots(&c.quota, n)
}

// affords reports whether it is the session's turn, and its budget allows n more bytes.
// A session that holds nothing may have any buffer, so that none waits for itself.
func (c *sessionState) affords(n int) bool {
	if !c.thread.feeding && c.waiters.head != nil {
		return false
	}
	return c.charged.Used == 0 || c.charged.Used+n <= c.session.settings.Limits.SessionMemory
}

// wait queues a task until memory is there. One without a connection is not to stand
// in the way of others.
func (c *sessionState) wait(t *task) {
	if t.conn.lost {
		return
	}
	if !t.waiting {
		c.waiters.push(t)
	}
	c.thread.starve(c)
	c.askForACKs()
}

// feed resumes the tasks that wait for memory, oldest first, until one has to
// wait again.
func (c *sessionState) feed() {
	defer c.Contain()
	for t := c.waiters.head; t != nil; t = c.waiters.head {
		c.waiters.pop()
		c.calling = t
		t.cmd.Resume()
		c.calling = nil
		if c.waiters.tail == t { // it waits again: first in line still
			c.waiters.rotate()
			return
		}
	}
}

// starve notes that a task of c waits for memory.
func (th *thread) starve(c *sessionState) {
	if !c.starved {
		c.starved = true
		th.starved = append(th.starved, c)
	}
}

// freed follows every release of a buffer. Who waits for memory goes on at the
// end of the pass: the releasing command is still at work. A pool that had too
// little for one who did not wait is asked again as well.
func (th *thread) freed() {
	if (th.quotas.exhausted || len(th.starved) > 0 || !th.far.empty()) && !th.feedDue {
		th.feedDue = true
		th.loop.AtPassEnd(th.feedTask)
	}
}

// feed lets the sessions whose tasks wait for memory try again, one round,
// in the order in which they began to wait. Nobody overtakes the one that the pool had
// too little for, but with a buffer of its own.
func (th *thread) feed() {
	th.feedDue, th.quotas.exhausted, th.feeding = false, false, true
	waiting := th.starved
	th.starved = nil
	for _, c := range waiting {
		c.starved = false
		if !th.quotas.exhausted || th.quotas.reserves(&c.quota) {
			c.feed()
		}
		if c.waiters.head != nil {
			th.starve(c)
		}
	}
	th.far.feed(&th.quotas)
	th.feeding = false
}

// taskQueue is a FIFO of tasks. They are in the task table too, so it has its
// own links.
type taskQueue struct {
	head, tail *task
}

func (q *taskQueue) push(t *task) {
	t.waiting, t.waitNext = true, nil
	if q.tail == nil {
		q.head = t
	} else {
		q.tail.waitNext = t
	}
	q.tail = t
}

func (q *taskQueue) pop() {
	t := q.head
	q.head = t.waitNext
	if q.head == nil {
		q.tail = nil
	}
	t.waiting, t.waitNext = false, nil
}

// rotate moves the last task to the front.
func (q *taskQueue) rotate() {
	t := q.tail
	if q.head == t {
		return
	}
	q.remove(t)
	t.waiting = true
	t.waitNext, q.head = q.head, t
}

func (q *taskQueue) remove(t *task) {
	if !t.waiting {
		return
	}
	var before *task
	for w := q.head; w != t; w = w.waitNext {
		before = w
	}
	if before == nil {
		q.head = t.waitNext
	} else {
		before.waitNext = t.waitNext
	}
	if q.tail == t {
		q.tail = before
	}
	t.waiting, t.waitNext = false, nil
}
