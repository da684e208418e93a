package scsi

import (
	"sync"

	"lunar/internal/buf"
	"lunar/target/scsi/relay"
)

// transfers are the commands that a unit relays and that move more than what goes with them
// and comes with their answers, by number.
type transfers struct {
	mu  sync.Mutex
	all map[uint64]*carried
}

// arrival is a message about a large command, on the command's thread. It implements Task, and
// buf.Lender of what it brings.
type arrival struct {
	r      *carried
	want   relay.Want // of Data-Out
	part   relay.Part // of Data-In
	isPart bool
	asked  *segment // that the data of a want come into
	loan   buf.Loan // of the data of a part
	answer func(body ...[]byte)
}

// Want takes a request for Data-Out of a command that is relayed, Part Data-In of one. Both are
// answered at some time; until then the message is theirs. Any goroutine may call them.
func (lu *LogicalUnit) Want(w relay.Want, answer func(body ...[]byte)) {
	lu.arrive(w.Task, &arrival{want: w, answer: answer})
}

// Part: see Want.
func (lu *LogicalUnit) Part(p relay.Part, answer func(body ...[]byte)) {
	lu.arrive(p.Task, &arrival{part: p, isPart: true, answer: answer})
}

func (lu *LogicalUnit) arrive(task uint64, a *arrival) {
	t := &lu.transfers
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.all[task]
	if r == nil {
		a.answer()
		return
	}
	a.r = r
	r.c.Port.Wake(r.c, a)
}

// track lets messages find a command, if there may be any. The passage's mu is held.
func (r *carried) track() {
	if r.c == nil || r.out <= SegmentSize && r.in <= SegmentSize {
		return
	}
	t := &r.c.Nexus.LU.transfers
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil {
		t.all = map[uint64]*carried{}
	}
	r.large = true
	t.all[r.number] = r
}

func (r *carried) untrack() {
	if !r.large {
		return
	}
	t := &r.c.Nexus.LU.transfers
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.all, r.number)
}

// wake has an outcome come to the thread, behind what has arrived before.
func (r *carried) wake(t Task) {
	if r.large {
		all := &r.c.Nexus.LU.transfers
		all.mu.Lock()
		defer all.mu.Unlock()
		delete(all.all, r.number)
	}
	r.c.Port.Wake(r.c, t)
}

// Run implements Task.
func (a *arrival) Run() {
	r := a.r
	switch {
	case r.c.ending:
		a.answer()
	case a.isPart:
		a.deliver()
	default:
		r.later = append(r.later, a)
		r.c.pump()
	}
}

// deliver sends a part of Data-In to the initiator, out of the message, which is answered when the
// initiator has it. What is behind a part that is lost is of no use.
func (a *arrival) deliver() {
	r, data := a.r, a.part.Data
	if len(data) == 0 || a.part.Offset != r.came {
		a.answer()
		return
	}
	r.came += uint32(len(data))
	r.c.Port.SendDataIn(r.c, a.part.Offset, (*buf.Pool)(nil).Lend(&a.loan, data, a), data, false)
}

// Returned implements buf.Lender.
func (a *arrival) Returned(*buf.Loan) { a.answer() }

// move sees to what is asked for, in order.
func (r *carried) move() {
	for i := 0; i < len(r.later); {
		a := r.later[i]
		if a.asked == nil && !a.land() {
			return
		}
		if a.asked.state != arrived {
			i++
			continue
		}
		a.answer(a.asked.data())
		r.leave(a.asked)
		r.later = append(r.later[:i], r.later[i+1:]...)
	}
}

// land asks the initiator for Data-Out; false: not now. They come into the command's own buffer, what
// was sent of which has come, and is not sent again; while that is in use, into others that nobody
// else waits for.
func (a *arrival) land() bool {
	r, c, n := a.r, a.r.c, min(a.want.Len, SegmentSize)
	s := c.at(c.head)
	if own := s.ref != nil && int(n) <= len(s.ref.Bytes()); own && !r.lands {
		r.lands = true
	} else if s = r.free(); s == nil || own && !c.Port.Affords(c, int(n)) {
		return false
	} else if s.ref = c.alloc(n, true); s.ref == nil {
		return false
	}
	a.asked, s.off, s.n = s, a.want.Offset, n
	s.receive()
	return true
}

// leave has a segment be free again.
func (r *carried) leave(s *segment) {
	if s == r.c.at(r.c.head) {
		r.lands = false
		return
	}
	s.release()
}

// free returns a segment that is not in use, but for the first one, which has the command's own buffer.
func (r *carried) free() *segment {
	c := r.c
	for i := c.head + 1; i < c.head+MaxSegments; i++ {
		if s := c.at(i); s.ref == nil {
			c.tail = max(c.tail, i+1)
			return s
		}
	}
	return nil
}

// refuseLater answers what has arrived and will not be done.
func (r *carried) refuseLater() {
	later := r.later
	r.later = nil
	for _, a := range later {
		a.answer()
	}
}
