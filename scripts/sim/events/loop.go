package events

import (
	"lunar/scheduler/batch"
	"lunar/scripts/sim/experiment"
	"lunar/scripts/sim/gather"
	"lunar/scripts/sim/kernel"
)

// costs are what a request costs its loop: to serve it, and to post responses,
// whatever their number. In ns.
type costs struct{ serve, post func() int64 }

// fixed returns costs that are always the same.
func fixed(serve, post int64) costs {
	return costs{func() int64 { return serve }, func() int64 { return post }}
}

// loop is an event thread: it serves one request after the other and posts their
// responses when the batch says so.
type loop struct {
	kernel  *kernel.Kernel
	number  int64
	cost    costs
	batch   gather.Point
	inbox   fifo
	ready   fifo // served, their responses wait
	busy    bool
	planned int64
	log     *experiment.Log
	served  int64 // requests whose responses have been posted
	stayed  int64 // ns, of all of them together
}

// request is one that a loop has: when it came and what follows its response.
type request struct {
	came int64
	done func()
}

// fifo is a queue of requests that reuses its memory.
type fifo struct {
	items []request
	head  int
}

func (q *fifo) push(r request) { q.items = append(q.items, r) }

func (q *fifo) len() int { return len(q.items) - q.head }

func (q *fifo) pop() request {
	r := q.items[q.head]
	q.items[q.head].done = nil
	if q.head++; q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
	return r
}

// accept takes a request, and calls done when its response has been posted.
func (l *loop) accept(done func()) {
	l.inbox.push(request{l.kernel.Now(), done})
	l.batch.Backlog(l.inbox.len(), l.kernel.Now())
	l.next()
}

// next begins what the loop does next: responses that have to leave first.
func (l *loop) next() {
	if l.busy {
		return
	}
	now := l.kernel.Now()
	switch n := l.batch.Ready(now); {
	case n > 0:
		l.post(l.ready.len())
	case l.inbox.len() > 0:
		l.after(l.cost.serve(), l.served1)
	default:
		l.wait()
	}
}

// wait plans the batch timer.
func (l *loop) wait() {
	if at, ok := l.batch.Deadline(); ok && at != l.planned {
		l.planned = at
		l.kernel.After(at-l.kernel.Now(), kernel.BatchTimer, l.next)
	}
}

// after keeps the loop busy for ns.
func (l *loop) after(ns int64, done func()) {
	l.busy = true
	l.kernel.After(ns, kernel.Completion, func() {
		l.busy = false
		done()
		l.next()
	})
}

// served1 lets the response of the first request wait for others that are there.
func (l *loop) served1() {
	l.ready.push(l.inbox.pop())
	l.batch.Backlog(l.inbox.len(), l.kernel.Now())
	l.batch.Add(l.inbox.len() > 0, l.kernel.Now())
}

// post sends the n responses that are ready.
func (l *loop) post(n int) {
	l.batch.Sent(n, 0, l.kernel.Now())
	l.log.Line(l.kernel.Now(), "post", l.number, int64(n))
	l.after(l.cost.post(), func() {
		for range n {
			r := l.ready.pop()
			l.served++
			l.stayed += l.kernel.Now() - r.came
			l.batch.Completed(512, l.kernel.Now())
			r.done()
		}
	})
}

// perPost is the mean number of responses that a post carries.
func (l *loop) perPost() float64 {
	n := l.batch.Counters()
	return float64(n.Requests) / float64(n.Batches)
}

// stay is the mean time from coming to having been posted, in us.
func (l *loop) stay() float64 { return float64(l.stayed) / float64(l.served) / 1e3 }

// Configurations of a loop's posts: a post for each response; one for all that are
// ready when no request is left to serve; as many as throughput says.
var (
	each     = batch.Config{}
	passes   = batch.Config{Mode: batch.Static, Level: 64, Delay: batch.ServerDelay}
	adaptive = batch.Config{Mode: batch.Adaptive, Interval: 16e6, Delay: batch.ServerDelay}
)

// newLoop returns an idle loop.
func newLoop(k *kernel.Kernel, number int, cost costs, c batch.Config, log *experiment.Log) *loop {
	return &loop{kernel: k, number: int64(number), cost: cost, batch: gather.New(c, 0), log: log}
}
