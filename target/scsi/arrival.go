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

// arrival is a message about a large command, on the command's thread. It implements Task.
type arrival struct {
	r      *carried
	want   relay.Want // of Data-Out
	part   relay.Part // of Data-In
	isPart bool
	asked  *segment // that the data of a want come into
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
	if r.c.ending {
		a.answer()
		return
	}
	r.later = append(r.later, a)
	r.c.pump()
}

// move sees to what has arrived, in order, as far as there is memory.
func (r *carried) move() {
	for i := 0; i < len(r.later); {
		a := r.later[i]
		switch {
		case a.isPart && i > 0: // the order of Data-In
			return
		case a.isPart && !a.deliver():
			return
		case !a.isPart && !a.fetch():
			if i++; a.asked == nil {
				return
			}
			continue
		}
		r.later = append(r.later[:i], r.later[i+1:]...)
	}
}

// deliver sends a part of Data-In to the initiator; false: not now. What is behind a part that is
// lost is of no use.
func (a *arrival) deliver() bool {
	c, n := a.r.c, uint32(len(a.part.Data))
	if a.part.Offset != a.r.came {
		a.answer()
		return true
	}
	ref := c.alloc(n, false)
	if ref == nil {
		return false
	}
	buf.Copy(ref.Bytes(), a.part.Data)
	a.r.came += n
	c.Port.SendDataIn(c, a.part.Offset, ref, ref.Bytes()[:n], false)
	a.answer()
	return true
}

// fetch asks the initiator for Data-Out, or answers with them; false: not now.
func (a *arrival) fetch() bool {
	c := a.r.c
	if a.asked == nil {
		s, n := a.r.free(), min(a.want.Len, SegmentSize)
		if s == nil {
			return false
		}
		ref := c.alloc(n, true)
		if ref == nil {
			return false
		}
		a.asked, s.ref, s.off, s.n = s, ref, a.want.Offset, n
		s.receive()
	}
	if a.asked.state != arrived {
		return false
	}
	a.answer(a.asked.data())
	a.asked.release()
	return true
}

// free returns a segment that is not in use; the first one keeps what was sent.
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
