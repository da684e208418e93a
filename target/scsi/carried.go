package scsi

import (
	"errors"
	"sync/atomic"
	"time"

	"lunar/internal/buf"
	"lunar/target/scsi/relay"
	"lunar/target/scsi/sense"
)

// carried is a command, or a task management function, on its way to the server that serves
// its logical unit. It implements feature and Task. What is not under passage.mu belongs to
// the command's thread.
type carried struct {
	c         *Command        // nil: a function
	number    uint64          // ascending
	round     uint64          // of the passage that it was sent in; under its mu
	until     time.Time       // it waits at most; zero: it has not waited; under passage.mu
	cancelled bool            // nobody wants it to run any more; under passage.mu
	via       *passage        // set before it enters that
	manage    relay.Manage    // of a function
	began     time.Time       // when it came
	sentAt    time.Time       // when it was sent last; under passage.mu until there is an outcome
	to        string          // where; as sentAt
	told      func(done bool) // follows a function's end

	out, in uint32 // bytes of Data-Out and Data-In that there may be
	first   uint32 // bytes of Data-Out that are sent unasked
	sent    bool   // it is the passage's
	came    uint32 // bytes of Data-In that have come ahead of the answer
	head    []byte // of the message
	lands   bool   // Data-Out that were asked for come into the command's own buffer
	parts   [2][]byte

	outcome atomic.Pointer[outcomeOf] // nil: there is none yet
	later   []*arrival                // that wait for memory or data, in order
	large   bool                      // messages about it may come: it moves in several parts
}

// outcomeOf is what has become of what was carried.
type outcomeOf struct {
	relay.Answer
	fate fate
	rest []byte // Data that found no place in the command's buffer
}

type fate uint8

const (
	answered   fate = iota // by the server that serves the unit
	transition             // it does not run, or not any more, and its initiator has to send it again
	served                 // the unit is served here by now, and it was sent nowhere
)

// relay has a command run by the server that serves the logical unit.
func (lu *LogicalUnit) relay(c *Command) {
	if c.Nexus.Remote { // it came from there
		c.elsewhere = true
		c.FailStatus(Busy)
		return
	}
	if c.row.Opcode == requestSense && c.Nexus.attentions.pending.Load() {
		c.row.Run(c)
		return
	}
	r := &carried{c: c, number: lastCarried.Add(1), began: time.Now()}
	if c.HasOut {
		r.out = Wants(c.Nexus, &c.CDB, c.EDTL)
	}
	switch {
	case c.HasIn && c.HasOut:
		r.in = c.ReadEDTL
	case c.HasIn:
		r.in = c.EDTL
	}
	r.first = min(r.out, SegmentSize)
	c.feature = r
	c.run(carryStep)
}

// requestSense is its operation code. What this server has to tell it tells itself.
const requestSense = 0x03

// relayed reports that the command is on its way to the server that serves its logical unit.
func (c *Command) relayed() bool {
	_, is := c.feature.(*carried)
	return is
}

// Elsewhere reports that a command of a remote nexus did nothing, because another server serves
// its logical unit.
func (c *Command) Elsewhere() bool { return c.elsewhere }

// own is how many bytes the buffer has that the command holds until its outcome, for the Data-Out
// that are sent unasked, then for those that are asked for, and for the Data-In that come with the
// answer. More Data-In than that come ahead, and need none. So a command that holds a buffer never
// waits for another one: what others wait for is not held by one that waits for them.
func (r *carried) own() uint32 {
	if r.in > SegmentSize {
		return r.first
	}
	return max(r.first, r.in)
}

// carryStep gathers the first part of Data-Out, and then sees to what comes.
func carryStep(c *Command) {
	r := c.feature.(*carried)
	switch {
	case r.sent:
		r.move()
	case c.head == c.tail && r.own() > 0:
		r.gather()
	case c.out == 0:
		r.sent = true
		c.running++ // until there is an outcome
		r.via = c.Nexus.LU.passageOf(c.Nexus)
		r.via.enter(r)
	}
}

// gather gets the buffer and asks for the data.
func (r *carried) gather() {
	c, n := r.c, r.own()
	ref := c.alloc(n, n == r.first)
	if ref == nil {
		return
	}
	s := c.at(c.tail)
	c.tail++
	s.ref, s.off, s.n = ref, 0, r.first
	if c.again = true; r.first > 0 {
		s.receive()
	}
}

// message is what is sent. The passage's mu is held.
func (r *carried) message(p *passage) Message {
	c := r.c
	if c == nil {
		r.manage.Nexus = p.number
		return Message{Lane: p.lane, Room: relay.MaxHeader, Body: [][]byte{r.manage.Append(nil)}}
	}
	e := relay.Execute{
		Nexus: p.number, Task: r.number, Attribute: uint8(c.Attribute), HasOut: c.HasOut, HasIn: c.HasIn,
		ReadOnly: c.Nexus.ReadOnly.Load(), EDTL: c.EDTL, ReadEDTL: c.ReadEDTL, CDB: c.CDB[:c.CDBLength],
	}
	r.head = e.Append(r.head[:0])
	r.parts[0] = r.head
	body := r.parts[:1]
	if r.first > 0 {
		r.parts[1] = c.at(c.head).ref.Bytes()[:r.first]
		body = r.parts[:2]
	}
	return Message{Lane: p.lane, Room: int(min(r.in, SegmentSize)) + relay.MaxHeader, Command: true, Body: body}
}

// done takes the answer, on any goroutine. Data go to the command's buffer, which it does not
// use while it waits.
func (r *carried) done(answer []byte, err error) {
	o := &outcomeOf{}
	if err == nil {
		err = o.Parse(answer)
	}
	switch {
	case errors.Is(err, ErrNotSent), err == nil && (o.Outcome == relay.NotHere || o.Outcome == relay.NoNexus):
		r.via.returned(r)
	case err != nil:
		r.via.unknown(r)
	default:
		if r.c != nil && len(o.Data) > 0 {
			o.rest = o.keep(r.c.at(r.c.head).ref)
		}
		r.settle(o)
	}
}

// keep copies Data to a buffer, or if it has no room for them, elsewhere.
func (o *outcomeOf) keep(to *buf.Ref) []byte {
	if to != nil && len(to.Bytes()) >= len(o.Data) {
		buf.Copy(to.Bytes(), o.Data)
		return nil
	}
	return append([]byte(nil), o.Data...)
}

// conclude gives what was carried an outcome without an answer.
func (r *carried) conclude(f fate) { r.settle(&outcomeOf{fate: f}) }

func (r *carried) settle(o *outcomeOf) {
	if r.c == nil {
		r.told(o.fate == answered && o.Outcome == relay.Done)
		return
	}
	r.outcome.Store(o)
	r.wake(r)
}

// Run implements Task: there is an outcome.
func (r *carried) Run() {
	c, o := r.c, r.outcome.Load()
	c.running--
	r.trace(o)
	switch {
	case c.ending:
		c.settle()
	case o.fate == served:
		r.runHere()
	case o.fate == transition || o.Outcome == relay.Cut:
		c.Fail(sense.InTransition)
	case o.Outcome == relay.Aborted: // for another initiator, which has had it told by a unit attention
		c.ending, c.aborted = true, true
		c.settle()
	default:
		r.finish(o)
	}
}

// trace tells whoever traces the session.
func (r *carried) trace(o *outcomeOf) {
	t, ok := r.c.Port.(Tracer)
	if !ok || r.to == "" {
		return
	}
	t.Relayed(r.c, Relayed{
		Server: r.to, Waited: r.sentAt.Sub(r.began), Away: time.Since(r.sentAt), There: time.Duration(o.Took) * time.Microsecond, Ended: o.fate == answered,
	})
}

// finish ends the command as the server has ended it.
func (r *carried) finish(o *outcomeOf) {
	c, n := r.c, uint32(len(o.Data))
	c.Nexus.LU.speaks(o.Descriptor)
	c.Length, c.Takes, c.missed = o.Length, o.Takes, true
	switch {
	case Status(o.Status) == Good && o.Offset != r.came: // a part is lost
		c.Fail(sense.InTransition)
	case Status(o.Status) != Good || n == 0:
		c.end(Status(o.Status), o.Sense)
	case o.rest != nil: // the command has no buffer, or a smaller one
		c.Parameter = o.rest
		c.ending = true
		c.settle()
	default:
		s := c.at(c.head)
		s.off, s.n = o.Offset, n
		c.final, c.Status, c.ending = s, Good, true
		c.settle()
	}
}

// speaks notes the format of the unit's sense data.
func (lu *LogicalUnit) speaks(descriptor bool) {
	if lu.state.Load().DescriptorSense != descriptor {
		lu.update(func(s *State) { s.DescriptorSense = descriptor })
	}
}

// runHere runs a command that was sent nowhere, by a Port that has the first part of its
// Data-Out already.
func (r *carried) runHere() {
	c := r.c
	if r.first > 0 {
		have := append([]byte(nil), c.at(c.head).ref.Bytes()[:r.first]...)
		c.Port = &gathered{c.Port, have}
	}
	for c.head != c.tail {
		c.close()
	}
	c.head, c.tail, c.feature, c.step = 0, 0, nil, nil
	c.Nexus.LU.proceed(c)
}

// gathered is a Port of a command, the first part of whose Data-Out came before.
type gathered struct {
	Port
	have []byte
}

// ReceiveDataOut implements Port. Segments end where the first part does, or before.
func (g *gathered) ReceiveDataOut(c *Command, off uint32, dst []byte) {
	switch end := off + uint32(len(dst)); {
	case end <= uint32(len(g.have)):
		buf.Copy(dst, g.have[off:end])
		c.DataOut(off, uint32(len(dst)))
	case off >= uint32(len(g.have)):
		g.Port.ReceiveDataOut(c, off, dst)
	default:
		c.FailTransfer(sense.InTransition)
	}
}

// cancel implements feature.
func (r *carried) cancel(*Command) bool {
	if !r.sent {
		return false
	}
	r.refuseLater()
	return r.via.cancel(r)
}

// ended implements feature.
func (r *carried) ended(c *Command) {
	c.feature = nil
	r.refuseLater()
	r.untrack()
}

// discarded implements feature.
func (r *carried) discarded(c *Command, _ bool) {
	r.cancel(c)
	r.untrack()
}

// Manage has the server that serves the logical unit carry out a task management function (RFC
// 7143 section 11.5.1) that is about more than one command. False says that commands are not
// relayed now; else told is called, on any goroutine.
func (n *Nexus) Manage(function uint8, told func(done bool)) bool {
	if restrictions(n.restricted.Load())&restrictRelay == 0 {
		return false
	}
	r := &carried{number: lastCarried.Add(1), via: n.LU.passageOf(n), manage: relay.Manage{Function: function}, told: told}
	r.via.enter(r)
	return true
}
