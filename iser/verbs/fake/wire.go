package fake

import (
	"slices"

	"lunar/iser/verbs"
)

// canRun reports whether the QP's hardware has something that it can do.
func (q *qp) canRun() bool {
	if q.state != ready || q.gone() || q.peer.state != ready {
		return false
	}
	return q.canAnswer() || q.canIssue()
}

// canAnswer reports whether the oldest RDMA READ under way can end.
func (q *qp) canAnswer() bool {
	if q.readsBegun == 0 || q.device.held || !q.device.open(verbs.OpRead) {
		return false
	}
	e := q.slot(q.oldestRead())
	r := q.peer.device.regions[e.wr.RKey]
	return r == nil || r.asked == nil || slices.Contains(r.supplied, span{e.wr.RAddr, length(e.sges)})
}

// oldestRead is the RDMA READ that was begun first of those under way.
func (q *qp) oldestRead() uint64 {
	n := q.retired
	for q.slot(n).progress != underWay {
		n++
	}
	return n
}

// gone reports whether nothing that this QP sends can arrive.
func (q *qp) gone() bool { return q.peer == nil || q.device.down || q.peer.device.down }

// unanswered reports whether the QP has sent what nobody will answer.
func (q *qp) unanswered() bool {
	return q.retired < q.posted && (q.gone() || q.peer.state == failed)
}

// canIssue reports whether the next entry can begin.
func (q *qp) canIssue() bool {
	if q.issued == q.posted {
		return false
	}
	e := q.slot(q.issued)
	switch {
	case e.wr.Flags&verbs.FlagFence != 0 && q.readsBegun > 0:
		return false
	case e.wr.Op == verbs.OpRead:
		return q.readsBegun < q.readDepth
	case e.wr.Op == verbs.OpWrite:
		return q.device.open(verbs.OpWrite)
	case e.wr.Op == verbs.OpSend || e.wr.Op == verbs.OpSendInv:
		return !e.notReady || q.peer.received < q.peer.awaited
	}
	return true
}

func (q *qp) slot(n uint64) *entry { return &q.sends[n%uint64(len(q.sends))] }

// work describes entry n.
func (q *qp) work(n uint64) Work {
	e := q.slot(n)
	return Work{q.device.host.name, q.number, n, e.wr, e.inline, int(q.awaited - q.recvFreed), q.recvFreed}
}

// run does one thing: it answers the oldest RDMA READ, or begins the next entry.
func (q *qp) run() {
	if q.canAnswer() && (!q.canIssue() || q.device.host.fabric.random.IntN(2) == 0) {
		q.answerRead()
	} else {
		q.issue()
	}
	for q.state == ready && q.retired < q.issued && q.slot(q.retired).progress == done {
		q.retire(verbs.StatusOK)
	}
}

// issue begins the next entry; all but RDMA READs are done at once.
func (q *qp) issue() {
	f := q.device.host.fabric
	e := q.slot(q.issued)
	if f.options.Fault != nil {
		if s := f.options.Fault(q.work(q.issued)); s != verbs.StatusOK {
			q.failAt(q.issued, s)
			return
		}
	}
	var status verbs.Status
	switch e.wr.Op {
	case verbs.OpRead:
		e.progress = underWay
		q.readsBegun++
		q.issued++
		if r := q.peer.device.regions[e.wr.RKey]; r != nil && r.asked != nil {
			r.asked(e.wr.RAddr, length(e.sges))
		}
		return
	case verbs.OpWrite:
		status = q.write(e)
	default:
		var delivered bool
		if status, delivered = q.message(e); !delivered && status == verbs.StatusOK {
			return // it waits for a receive
		}
	}
	if status != verbs.StatusOK {
		q.failAt(q.issued, status)
		return
	}
	e.progress = done
	q.issued++
}

// answerRead ends the oldest RDMA READ under way.
func (q *qp) answerRead() {
	n := q.oldestRead()
	e := q.slot(n)
	from := q.peer.remote(e.wr.RKey, e.wr.RAddr, length(e.sges), verbs.AccessRemoteRead)
	if from == nil || q.readsBegun > q.peer.peerDepth {
		q.peer.accused(verbs.AsyncQPAccess)
		q.failAt(n, verbs.StatusRemoteAccess)
		return
	}
	if status := q.scatter(e.sges, from); status != verbs.StatusOK {
		q.failAt(n, status)
		return
	}
	e.progress = done
	q.readsBegun--
	q.device.carry(verbs.OpRead, length(e.sges))
}

// scatter puts what an RDMA READ brought into its segments.
func (q *qp) scatter(sges []verbs.SGE, from []byte) verbs.Status {
	need := verbs.AccessLocalWrite
	if q.device.options.Caps.IWARP {
		need |= verbs.AccessRemoteWrite
	}
	if status := q.checkLocal(sges, need); status != verbs.StatusOK {
		return status
	}
	for _, s := range sges {
		from = from[copy(q.local(s, need), from):]
	}
	return verbs.StatusOK
}

func (q *qp) checkLocal(sges []verbs.SGE, need verbs.Access) verbs.Status {
	if length(sges) > q.device.options.Caps.MaxMessage {
		return verbs.StatusLocalLength
	}
	for _, s := range sges {
		if s.Len > 0 && q.local(s, need) == nil {
			return verbs.StatusLocalProtection
		}
	}
	return verbs.StatusOK
}

// size is how many bytes an entry sends.
func (e *entry) size() uint32 {
	if e.wr.Flags&verbs.FlagInline != 0 {
		return uint32(len(e.inline))
	}
	return length(e.sges)
}

// gather copies an entry's bytes to where they go.
func (q *qp) gather(e *entry, to []byte) {
	if e.wr.Flags&verbs.FlagInline != 0 {
		copy(to, e.inline)
		return
	}
	for _, s := range e.sges {
		to = to[copy(to, q.local(s, 0)):]
	}
}

// checkSource says whether an entry's own segments are in order.
func (q *qp) checkSource(e *entry) verbs.Status {
	if e.wr.Flags&verbs.FlagInline != 0 {
		return verbs.StatusOK
	}
	return q.checkLocal(e.sges, 0)
}

// write carries out an RDMA WRITE.
func (q *qp) write(e *entry) verbs.Status {
	if status := q.checkSource(e); status != verbs.StatusOK {
		return status
	}
	to := q.peer.remote(e.wr.RKey, e.wr.RAddr, e.size(), verbs.AccessRemoteWrite)
	if to == nil {
		q.peer.accused(verbs.AsyncQPAccess)
		return verbs.StatusRemoteAccess
	}
	q.gather(e, to)
	q.device.carry(verbs.OpWrite, e.size())
	return verbs.StatusOK
}

// message carries out a SEND, if the peer has a receive.
func (q *qp) message(e *entry) (status verbs.Status, delivered bool) {
	if status := q.checkSource(e); status != verbs.StatusOK {
		return status, false
	}
	p := q.peer
	if p.received == p.awaited {
		return q.notReady(e), false
	}
	p.communicates()
	r := p.takeReceive()
	to := p.local(r.sge, verbs.AccessLocalWrite)
	wc := verbs.WC{ID: r.id, Op: verbs.WCRecv, Len: e.size(), QP: p.number}
	switch {
	case to == nil:
		wc.Status, status = verbs.StatusLocalAccess, verbs.StatusRemoteOperation
	case int(e.size()) > len(to):
		wc.Status, status = verbs.StatusLocalLength, verbs.StatusRemoteInvalid
	case e.wr.Op == verbs.OpSendInv && !p.invalidate(q, e.wr.RKey):
		wc.Status, status = verbs.StatusLocalQP, verbs.StatusRemoteInvalid
	}
	if status != verbs.StatusOK {
		p.cq.add(completion{wc: wc, qp: p})
		p.accused(verbs.AsyncQPRequest)
		return status, false
	}
	q.gather(e, to)
	if e.wr.Op == verbs.OpSendInv {
		wc.Flags, wc.Inv = verbs.WCWithInv, e.wr.RKey
	}
	p.cq.add(completion{wc: wc, qp: p})
	return verbs.StatusOK, true
}

// notReady counts a message that finds no receive, and fails the sender if it
// was told not to try again for ever.
func (q *qp) notReady(e *entry) verbs.Status {
	if !e.notReady {
		e.notReady = true
		p := q.peer
		p.device.counts.NotReady++
		p.device.host.fabric.breach("%s: a message for QP %d found no receive (RNR)", p.device.host.name, p.number)
	}
	if q.rnrRetry < 7 {
		return verbs.StatusRNRExceeded
	}
	return verbs.StatusOK
}

// invalidate takes a key of this side away, as the message of q asks for.
func (p *qp) invalidate(q *qp, key uint32) bool {
	r := p.device.regions[key]
	if r == nil || r.dead || r.pd != p.pd || r.RKey() == 0 || !p.device.host.kernel ||
		!p.device.options.Caps.MemoryManagement || !q.device.options.Caps.MemoryManagement {
		p.device.host.fabric.breach("%s: SEND_WITH_INV of key %#x of %s, which cannot be invalidated", q.device.host.name, key, p.device.host.name)
		return false
	}
	r.dead = true
	return true
}

// communicates tells of a message before the connection counts as established.
func (p *qp) communicates() {
	if !p.told && p.id.accepted && !p.id.established {
		p.told = true
		p.device.tell(verbs.AsyncCommEst, p.number)
	}
}

// accused fails the QP that got a wrong request.
func (p *qp) accused(what verbs.AsyncType) {
	if p.state == ready {
		p.device.tell(what, p.number)
		p.fail()
	}
}

// failHead fails the QP at its oldest entry.
func (q *qp) failHead(status verbs.Status) { q.failAt(q.retired, status) }

// failAt fails the QP at entry n; what was posted before it and is not done
// fails with it.
func (q *qp) failAt(n uint64, status verbs.Status) {
	for q.retired < n && q.slot(q.retired).progress == done {
		q.retire(verbs.StatusOK)
	}
	for q.retired < n {
		q.retire(verbs.StatusFlushed)
	}
	q.retire(status)
	q.fail()
}
