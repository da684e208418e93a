package scsi

import (
	"slices"
	"sync"
	"sync/atomic"
)

// attachAttention is what a new nexus is told first. A nexus is new to the
// logical unit, so nothing more specific than "power on or reset" is known to
// be true of what happened before it.
const attachAttention = ASCReset

// maxAttentions bounds a nexus's queue. SAM-5 lets a device server merge what
// it has not reported yet; there are fewer kinds than places in practice.
const maxAttentions = 8

// attentionQueue holds the unit attention conditions (SAM-5 clause 5.14) that
// a nexus has not been told yet, the next one first.
type attentionQueue struct {
	// pending mirrors mu.count != 0, so that the data path needs no lock.
	pending atomic.Bool
	mu      struct {
		sync.Mutex
		codes [maxAttentions]ASC
		count int
	}
}

// resetASC is the additional sense code of power on and reset conditions.
const resetASC = 0x29

// add queues asc. A power on or reset condition clears all others, because
// they tell of a past that the initiator must forget anyway; equal conditions
// are merged; the oldest gives way when the queue is full.
func (q *attentionQueue) add(asc ASC) {
	q.mu.Lock()
	defer q.mu.Unlock()
	codes := q.mu.codes[:q.mu.count]
	switch {
	case asc.Code() == resetASC:
		codes = codes[:0]
	case slices.Contains(codes, asc):
		return
	case len(codes) == maxAttentions:
		codes = slices.Delete(codes, 0, 1)
	}
	q.set(append(codes, asc))
}

// set replaces the queue by codes, a part of its own storage.
func (q *attentionQueue) set(codes []ASC) {
	q.mu.count = len(codes)
	q.pending.Store(len(codes) > 0)
}

// Attention establishes a unit attention condition for the nexus. Any
// goroutine may call it.
func (n *Nexus) Attention(asc ASC) { n.attentions.add(asc) }

// takeAttention removes the unit attention condition that is to be reported
// next, if there is one.
func (n *Nexus) takeAttention() (asc ASC, ok bool) {
	q := &n.attentions
	q.mu.Lock()
	defer q.mu.Unlock()
	codes := q.mu.codes[:q.mu.count]
	if len(codes) == 0 {
		return 0, false
	}
	asc = codes[0]
	q.set(slices.Delete(codes, 0, 1))
	return asc, true
}

// clearAttention removes asc, which the initiator has learnt otherwise.
func (n *Nexus) clearAttention(asc ASC) {
	q := &n.attentions
	q.mu.Lock()
	defer q.mu.Unlock()
	q.set(slices.DeleteFunc(q.mu.codes[:q.mu.count], func(a ASC) bool { return a == asc }))
}

// Attach makes n one of the logical unit's nexuses. Its first command is told
// so by a unit attention.
func (lu *LogicalUnit) Attach(n *Nexus) {
	n.Attention(attachAttention)
	lu.mu.Lock()
	defer lu.mu.Unlock()
	lu.mu.nexuses[n] = struct{}{}
	lu.recognize()
	lu.bar(n)
	lu.inherit(n)
}

// Detach ends what Attach began. The nexus's commands have ended.
func (lu *LogicalUnit) Detach(n *Nexus) {
	lu.ClearACA(n)
	lu.mu.Lock()
	defer lu.mu.Unlock()
	delete(lu.mu.nexuses, n)
	n.ended.Store(true)
	lu.dropReserve(n.it())
	lu.leave(n)
}

// Attached returns the nexus of an initiator port with a port of a target, or nil.
func (lu *LogicalUnit) Attached(initiator, target string, tag uint16) *Nexus {
	lu.mu.Lock()
	defer lu.mu.Unlock()
	for n := range lu.mu.nexuses {
		if n.Initiator == initiator && n.Target == target && n.TargetTag == tag {
			return n
		}
	}
	return nil
}

// Attention establishes a unit attention condition for all attached nexuses
// but except, which may be nil. Any goroutine may call it.
func (lu *LogicalUnit) Attention(asc ASC, except *Nexus) {
	lu.mu.Lock()
	defer lu.mu.Unlock()
	lu.attention(asc, except)
}

// attention is Attention for who holds mu.
func (lu *LogicalUnit) attention(asc ASC, except *Nexus) {
	for n := range lu.mu.nexuses {
		if n != except {
			n.Attention(asc)
		}
	}
}
