package tier

import (
	"lunar/backstore"
	"lunar/internal/evloop"
)

// maxForwards is how many requests of a lane other nodes may have at a time. What
// comes beyond is served where it is.
const maxForwards = 128

// forward is a request that a thread of another node serves, because that node
// has most of its bytes: fills, copies and I/O happen there, on a lane of the same
// volume (see agents), and the end comes back here. It is reused.
//
// INVARIANT: between Submit and the answer only the other thread touches op and
// the request's data. The submitter's own Op belongs to home all the time.
type forward struct {
	home  *lane
	to    *station
	asked *backstore.Op
	op    backstore.Op
	next  *forward // free

	unserved bool // the other thread could not open a lane
	sampled  bool
	began    int64 // of the hand-over that is under way, if sampled
	took     int64
}

// forwarding is a lane's part in it.
type forwarding struct {
	station *station // of the lane's event thread; nil: no forwarding
	agent   bool     // serves what others forward
	free    *forward
	count   int // forwards that were made
	samples int // requests, to measure some
}

// route is what Algorithm 1 says of a request.
type route struct {
	from  *station // nil: it was not run
	owner int      // of the Cache's nodes
	bytes int
	to    *station // that is to serve it; nil: here
}

// route runs Algorithm 1. It counts nothing.
func (l *lane) route(off int64, n int) (r route) {
	s := l.forwarding.station
	if s == nil || l.forwarding.agent {
		return r
	}
	r.from, r.bytes = s, n
	owner, away := s.router.Owner(l.volume.config.LU, off, n)
	r.owner = owner
	if away {
		r.to = s.peers[owner]
	}
	return r
}

// here counts a request that is served where it is.
func (r *route) here() {
	if r.from != nil {
		r.from.router.Served(r.owner, r.bytes)
	}
}

// remote runs Algorithm 1 for n bytes at off that this thread is about to serve,
// and counts the result. If forward is set, an event thread of the node, as
// evloop.Loop.Node numbers it, is to do so in its place.
func (l *lane) remote(off int64, n int) (node int, forward bool) {
	r := l.route(off, n)
	if r.to == nil {
		r.here()
		return l.loop.Node(), false
	}
	r.from.router.Forwarded(n)
	return r.to.loop.Node(), true
}

// forward hands op to the node that has its data, if it is worth it, and counts
// what becomes of it. If it reports true, op ends later.
func (l *lane) forward(op *backstore.Op) bool {
	if l.forwarding.station == nil || op.Kind != backstore.Read && op.Kind != backstore.Write {
		return false
	}
	r := l.route(op.Off, len(op.Data))
	f := l.newForward(r.to)
	if f == nil {
		r.here()
		return false
	}
	r.from.router.Forwarded(r.bytes)
	if op.Kind == backstore.Read {
		l.noted(op.Off, len(op.Data))
	}
	f.asked = op
	f.op.Kind, f.op.FUA, f.op.Atomic, f.op.Off, f.op.Data = op.Kind, op.FUA, op.Atomic, op.Off, op.Data
	f.begin()
	f.to.loop.Post(f)
	return true
}

// newForward returns one to the station; nil if there is none.
func (l *lane) newForward(to *station) *forward {
	if to == nil {
		return nil
	}
	w := &l.forwarding
	f := w.free
	switch {
	case f != nil:
		w.free, f.next = f.next, nil
	case w.count == maxForwards:
		return nil
	default:
		w.count++
		f = &forward{home: l}
		f.op.Done = func(*backstore.Op) { f.reply() }
	}
	l.running++
	f.to, f.unserved = to, false
	return f
}

// Run implements evloop.Task, on the other thread.
func (f *forward) Run() {
	f.handedOver()
	lane, err := f.home.volume.agents.lane(f.home.volume, f.to)
	if err != nil {
		f.unserved = true
		f.reply()
		return
	}
	f.to.router.Taken(len(f.op.Data))
	f.op.Hit = false
	if lane.TryNow(&f.op) || lane.Submit(&f.op) {
		f.reply()
	}
}

// reply sends the request home.
func (f *forward) reply() {
	if f.sampled {
		f.began = evloop.Monotonic()
	}
	f.home.loop.Post((*answer)(f))
}

// answer is a forward on its way back.
type answer forward

// Run implements evloop.Task, on the lane's own thread.
func (a *answer) Run() {
	f, l, op := (*forward)(a), a.home, a.asked
	f.handedOver()
	l.forwarding.tell(f)
	op.Err, op.Hit = f.op.Err, f.op.Hit
	unserved := f.unserved
	f.asked, f.op.Data = nil, nil
	f.next, l.forwarding.free = l.forwarding.free, f
	l.running--
	if !unserved || l.serve(op) {
		op.Done(op)
	}
}
