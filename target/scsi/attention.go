package scsi

import (
	"slices"
	"sync"
	"sync/atomic"

	"lunar/target/scsi/sense"
)

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
		codes [maxAttentions]sense.ASC
		count int
	}
}

// resetASC is the additional sense code of power on and reset conditions.
const resetASC = 0x29

// add queues asc. A power on or reset condition clears all others, because
// they tell of a past that the initiator must forget anyway; equal conditions
// are merged; the oldest gives way when the queue is full.
func (q *attentionQueue) add(asc sense.ASC) {
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
func (q *attentionQueue) set(codes []sense.ASC) {
	q.mu.count = len(codes)
	q.pending.Store(len(codes) > 0)
}

// Attention establishes a unit attention condition for the nexus. Any
// goroutine may call it.
func (n *Nexus) Attention(asc sense.ASC) { n.attentions.add(asc) }

// takeAttention removes the unit attention condition that is to be reported
// next, if there is one.
func (n *Nexus) takeAttention() (asc sense.ASC, ok bool) {
	if asc, ok = n.attentions.take(); ok && n.LU != nil && n.LU.reported != nil {
		n.LU.reported(n)
	}
	return asc, ok
}

func (q *attentionQueue) take() (asc sense.ASC, ok bool) {
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

// has reports whether the nexus is still to be told of a condition.
func (n *Nexus) has(asc sense.ASC) bool {
	q := &n.attentions
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Contains(q.mu.codes[:q.mu.count], asc)
}

// clearAttention removes asc, which the initiator has learnt otherwise.
func (n *Nexus) clearAttention(asc sense.ASC) {
	q := &n.attentions
	q.mu.Lock()
	defer q.mu.Unlock()
	q.set(slices.DeleteFunc(q.mu.codes[:q.mu.count], func(a sense.ASC) bool { return a == asc }))
}

// Attention establishes a unit attention condition for all attached nexuses
// but except, which may be nil. Any goroutine may call it.
func (lu *LogicalUnit) Attention(asc sense.ASC, except *Nexus) {
	lu.mu.Lock()
	defer lu.mu.Unlock()
	lu.attention(asc, except)
}

// attention is Attention for who holds mu.
func (lu *LogicalUnit) attention(asc sense.ASC, except *Nexus) {
	for n := range lu.mu.nexuses {
		if n != except && !(n.Remote && knownEverywhere(asc)) {
			n.Attention(asc)
		}
	}
}

// knownEverywhere reports whether each server that presents the unit establishes the condition
// for the sessions that it has.
func knownEverywhere(asc sense.ASC) bool {
	return asc == sense.ASCAsymmetricAccessStateChanged || asc == sense.ASCCapacityChanged
}
