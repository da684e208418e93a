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
	home  *forwarding
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
	loop    *evloop.Loop
	lu      uint32
	agents  *agents
	home    server
	free    *forward
	count   int // forwards that were made
	running int // of them, those that are under way
	samples int // requests, to measure some
}

// server is the lane, which serves what no other thread could.
type server interface{ serve(*backstore.Op) bool }

// route is what Algorithm 1 says of a request.
type route struct {
	from  *station // nil: it was not run
	owner int      // of the Cache's nodes
	bytes int
	to    *station // that is to serve it; nil: here
}

// route runs Algorithm 1. It counts nothing.
func (w *forwarding) route(off int64, n int) (r route) {
	s := w.station
	if s == nil || w.agent {
		return r
	}
	r.from, r.bytes = s, n
	owner, away := s.router.Owner(w.lu, off, n)
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
func (w *forwarding) remote(off int64, n int) (node int, forward bool) {
	r := w.route(off, n)
	if r.to == nil {
		r.here()
		return w.loop.Node(), false
	}
	r.from.router.Forwarded(n)
	return r.to.loop.Node(), true
}

// prepare counts what becomes of op, and returns a forward if it is worth handing to
// the node that has its data; else nil.
func (w *forwarding) prepare(op *backstore.Op) *forward {
	if w.station == nil || op.Kind != backstore.Read && op.Kind != backstore.Write {
		return nil
	}
	r := w.route(op.Off, len(op.Data))
	f := w.new(r.to)
	if f == nil {
		r.here()
		return nil
	}
	r.from.router.Forwarded(r.bytes)
	f.asked = op
	f.op.Kind, f.op.FUA, f.op.Atomic, f.op.Off, f.op.Data = op.Kind, op.FUA, op.Atomic, op.Off, op.Data
	return f
}

// start hands f over; its op ends later.
func (f *forward) start() {
	f.begin()
	f.to.loop.Post(f)
}

// new returns one to the station; nil if there is none.
func (w *forwarding) new(to *station) *forward {
	if to == nil {
		return nil
	}
	f := w.free
	switch {
	case f != nil:
		w.free, f.next = f.next, nil
	case w.count == maxForwards:
		return nil
	default:
		w.count++
		f = &forward{home: w}
		f.op.Done = func(*backstore.Op) { f.reply() }
	}
	w.running++
	f.to, f.unserved = to, false
	return f
}

// Run implements evloop.Task, on the other thread.
func (f *forward) Run() {
	f.handedOver()
	lane, err := f.home.agents.lane(f.to)
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
	f, w, op := (*forward)(a), a.home, a.asked
	f.handedOver()
	w.tell(f)
	op.Err, op.Hit = f.op.Err, f.op.Hit
	unserved := f.unserved
	f.asked, f.op.Data = nil, nil
	f.next, w.free = w.free, f
	w.running--
	if !unserved || w.home.serve(op) {
		op.Done(op)
	}
}
