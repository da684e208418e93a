package scsi

import (
	"hash/fnv"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"lunar/target/scsi/relay"
)

// passage is the way of a nexus to the server that serves its logical unit, for what is
// relayed. It keeps what cannot be sent, in order, until it can be or waits too long, and what
// was sent and whose outcome is not known until it certainly does not run any more: the
// server has ended it, or another one serves the unit.
type passage struct {
	nexus  *Nexus
	number uint64 // of the nexus, among all of this process
	lane   uint32

	mu      sync.Mutex
	carrier Carrier // nil: commands are not relayed
	led     Carrier // the last one, by which what is lost was sent
	here    bool    // the unit is served here
	state   passageState
	told    bool   // the server was told of the nexus
	round   uint64 // of attempts to open it; what is sent belongs to one
	settled uint64 // what was sent in rounds before, and has no outcome, does not run any more
	waiting []*carried
	lost    []*carried // of unknown outcome
	aborts  []*carried // that the server has yet to be told to end
	moves   uint64     // of the passage to another server
	away    int        // how many were sent to the server of now, and are not answered
	past    int        // and to earlier ones
	retry   *time.Timer
	retries bool // retry runs
}

// INVARIANT: nothing waits while it is passing.
type passageState uint8

const (
	shut    passageState = iota // the server does not know the nexus, or may have forgotten it
	opening                     // it is being told
	passing                     // commands are sent
	crowded                     // they would be, but there is no room on the way: it is tried again
	ended                       // the nexus has ended
)

// prover is what Nexus.Proven has if it can be told to another server.
type prover interface{ Parts() (group, user string) }

// retryEvery is how often what cannot be sent is tried.
const retryEvery = 50 * time.Millisecond

var lastPassage, lastCarried atomic.Uint64

// passageOf returns the nexus's passage. It is called on the nexus's thread.
func (lu *LogicalUnit) passageOf(n *Nexus) *passage {
	if n.passage != nil {
		return n.passage
	}
	h := fnv.New32a()
	h.Write([]byte(n.Initiator + "\x00" + n.Target))
	p := &passage{nexus: n, number: lastPassage.Add(1), lane: h.Sum32()}
	lu.mu.Lock()
	defer lu.mu.Unlock()
	p.carrier, p.here = lu.carrierOf(n), lu.mu.carrier == nil
	p.led = p.carrier
	n.passage = p
	return p
}

// carrierOf returns what commands of a nexus are relayed by; nil: they are not. The caller holds
// mu.
func (lu *LogicalUnit) carrierOf(n *Nexus) Carrier {
	if s := lu.access.Load().state(n.TargetTag); s != ActiveOptimized && s != ActiveNonOptimized {
		return nil
	}
	return lu.mu.carrier
}

// enter takes what is to be relayed.
func (p *passage) enter(r *carried) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dispatch(r)
}

// dispatch sends r or keeps it. The caller holds mu.
func (p *passage) dispatch(r *carried) {
	switch {
	case p.here:
		r.conclude(served)
	case p.carrier == nil || p.state == ended || r.cancelled:
		r.conclude(transition)
	case p.state == passing && len(p.waiting) == 0:
		p.send(r)
	default:
		p.keep(r)
		if p.state == shut {
			p.open()
		}
	}
}

// keep has r wait in the order of numbers. The caller holds mu.
func (p *passage) keep(r *carried) {
	if r.until.IsZero() {
		r.until = time.Now().Add(p.carrier.Patience())
	}
	at := len(p.waiting)
	for at > 0 && p.waiting[at-1].number > r.number {
		at--
	}
	p.waiting = slices.Insert(p.waiting, at, r)
}

// send sends r. The caller holds mu.
func (p *passage) send(r *carried) {
	r.round = p.round
	r.to, r.sentAt = p.carrier.Server(), time.Now()
	r.track()
	move := p.moves
	p.away++
	err := p.carrier.Carry(r.message(p), func(answer []byte, err error) {
		p.came(move)
		r.done(answer, err)
	})
	if err != nil {
		p.away--
		p.keep(r)
		p.state = crowded // what was sent goes on
		p.later()
	}
}

// came counts an answer, or that there is none, to what was sent before some moves.
func (p *passage) came(move uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if move == p.moves {
		p.away--
	} else {
		p.past--
	}
}

// sends reports whether the server knows the nexus. The caller holds mu.
func (p *passage) sends() bool { return p.state == passing || p.state == crowded }

// back takes what was certainly not done. The caller holds mu.
func (p *passage) back(r *carried) {
	if !p.sends() || r.round != p.round || r.cancelled {
		p.dispatch(r)
		return
	}
	p.keep(r)
	p.state = shut
	p.later()
}

// later has it tried again. The caller holds mu.
func (p *passage) later() {
	switch {
	case p.retries:
	case p.retry == nil:
		p.retry = time.AfterFunc(retryEvery, p.again)
	default:
		p.retry.Reset(retryEvery)
	}
	p.retries = true
}

// again ends what has waited too long, and tries to go on.
func (p *passage) again() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.retries = false
	now := time.Now()
	p.waiting = slices.DeleteFunc(p.waiting, func(r *carried) bool {
		late := now.After(r.until)
		if late {
			r.conclude(transition)
		}
		return late
	})
	aborts := p.aborts
	p.aborts = nil
	for _, r := range aborts {
		p.abort(r)
	}
	switch {
	case p.state == crowded:
		p.pass()
	case p.state == shut && p.carrier != nil && len(p.waiting)+len(p.lost) > 0:
		p.open()
	}
}

// pass sends what waits, as far as there is room. The caller holds mu.
func (p *passage) pass() {
	waiting := p.waiting
	p.state, p.waiting = passing, nil
	for i, r := range waiting {
		if p.state != passing {
			p.waiting = append(p.waiting, waiting[i:]...)
			return
		}
		p.send(r)
	}
}

// open tells the server of the nexus. The caller holds mu.
func (p *passage) open() {
	p.state = opening
	p.round++
	round, n := p.round, p.nexus
	b := relay.Begin{
		Nexus: p.number, Again: p.told, ReadOnly: n.ReadOnly.Load(), Tag: n.TargetTag, LUN: n.LUN, Volume: n.LU.Name(),
		Initiator: n.Initiator, Target: n.Target, Holder: n.holder(),
	}
	if who, ok := n.Proven.(prover); ok {
		b.Group, b.User = who.Parts()
	}
	m := Message{Lane: p.lane, Room: relay.MaxHeader, Body: [][]byte{b.Append(nil)}}
	err := p.carrier.Carry(m, func(answer []byte, err error) {
		var a relay.Answer
		if err == nil {
			err = a.Parse(answer)
		}
		p.opened(round, err == nil && a.Outcome == relay.Done)
	})
	if err != nil {
		p.state = shut
		p.later()
	}
}

// opened follows the answer to open: what was sent in earlier rounds has ended.
func (p *passage) opened(round uint64, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if round != p.round || p.state != opening {
		return // it leads elsewhere by now
	}
	if !known {
		p.state = shut
		p.later()
		return
	}
	p.told = true
	p.settle()
	p.pass()
}

// settle ends what was sent in earlier rounds. The caller holds mu.
func (p *passage) settle() {
	p.settled = p.round
	for _, r := range p.lost {
		r.conclude(transition)
	}
	p.lost = nil
}

// unsettled is that part of LogicalUnit.Unsettled: what is sent by a way that is opened again is not of
// it.
func (p *passage) unsettled() func() {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.round
	if p.state == shut {
		before++
	}
	if len(p.lost) == 0 || p.sends() {
		return nil
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.settled = max(p.settled, before)
		p.lost = slices.DeleteFunc(p.lost, func(r *carried) bool {
			over := r.round < before
			if over {
				r.conclude(transition)
			}
			return over
		})
	}
}

// unknown takes what was sent and has no outcome.
func (p *passage) unknown(r *carried) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.round < p.settled {
		r.conclude(transition)
		return
	}
	p.lost = append(p.lost, r)
	if p.state != opening && p.state != ended && p.carrier != nil {
		p.open()
	}
}

// returned takes what the server has not done. Unless it has forgotten the nexus, another one
// serves the unit, as this one will hear.
func (p *passage) returned(r *carried) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.back(r)
}

// move has the passage lead to another server, or here: the earlier one does nothing any more
// of what it has not answered. Or it leads nowhere, which says nothing of that: what is lost
// waits until it leads somewhere again.
func (p *passage) move(to Carrier, here bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if to == p.carrier && here == p.here || p.state == ended {
		return
	}
	p.carrier, p.here, p.state = to, here, shut
	p.round++
	if here || to != nil && to != p.led {
		p.leave()
		p.led, p.told = to, false
		p.settle()
	}
	waiting := p.waiting
	p.waiting = nil
	for _, r := range waiting {
		p.dispatch(r)
	}
	if p.state == shut && to != nil && len(p.lost) > 0 {
		p.open()
	}
}

// strandedAfter is how long an earlier server has to answer what it does not do any more. One
// whose store hangs does not.
const strandedAfter = time.Second

// leave sees to it that what the earlier server does not answer ends. The caller holds mu.
func (p *passage) leave() {
	p.moves++
	p.past, p.away = p.past+p.away, 0
	if p.past == 0 || p.led == nil {
		return
	}
	from, lane := p.led, p.lane
	time.AfterFunc(strandedAfter, func() {
		p.mu.Lock()
		stranded := p.past > 0
		p.mu.Unlock()
		if stranded {
			from.Break(lane)
		}
	})
}

// reopen tells the server again of a nexus that it may think has gone.
func (p *passage) reopen() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.told && p.carrier != nil && p.state != ended && p.state != opening {
		p.open()
	}
}

// cancel takes out what waits; false: it was sent, or has its outcome.
func (p *passage) cancel(r *carried) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := slices.Index(p.waiting, r)
	if at >= 0 {
		p.waiting = slices.Delete(p.waiting, at, at+1)
		return true
	}
	r.cancelled = true
	p.abort(r)
	return false
}

// abort has the server end what was sent, and has it told again as long as it does not know of
// that, or cannot be told: the command may be behind others on its way. The caller holds mu.
func (p *passage) abort(r *carried) {
	if !p.sends() || r.round != p.round || r.outcome.Load() != nil {
		return // the server ends it with all others, or nobody does any more
	}
	again := func() {
		p.aborts = append(p.aborts, r)
		p.later()
	}
	m := relay.Abort{Nexus: p.number, Task: r.number}
	err := p.carrier.Carry(Message{Lane: p.lane, Room: relay.MaxHeader, Follow: true, Body: [][]byte{m.Append(nil)}}, func(answer []byte, err error) {
		var a relay.Answer
		if err == nil && a.Parse(answer) == nil && a.Outcome == relay.Done {
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		again()
	})
	if err != nil {
		again()
	}
}

// end tells the server that the nexus has ended.
func (p *passage) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.retry != nil {
		p.retry.Stop()
	}
	if p.state = ended; p.told {
		p.carrier = p.led
		p.sayEnd(endTries)
	}
}

// endTries is how often the end of a nexus is said that is not heard of.
const endTries = 600

func (p *passage) sayEnd(tries int) {
	again := func() {
		if tries > 0 {
			time.AfterFunc(time.Second, func() { p.sayEnd(tries - 1) })
		}
	}
	m := relay.End{Nexus: p.number}
	err := p.carrier.Carry(Message{Lane: p.lane, Room: relay.MaxHeader, Body: [][]byte{m.Append(nil)}}, func(_ []byte, err error) {
		if err != nil {
			again()
		}
	})
	if err != nil {
		again()
	}
}
