package scsi

import (
	"sync"
	"sync/atomic"
)

// The extent guard makes COMPARE AND WRITE atomic against everything else that
// changes the medium, on whatever event thread it runs. The medium is cut into
// stripes, the stripes are spread over shards, and each shard is a fair
// readers-writer lock that no thread ever waits in: writes hold their shards
// shared, which costs one atomic addition each while no COMPARE AND WRITE is
// near; COMPARE AND WRITE holds them exclusively. Who has to wait is queued in
// the shard and woken through Port.Wake.
//
// INVARIANT: shards are entered in ascending order and kept while waiting for
// the next, so that waits cannot form a circle. Queues are first come, first
// served, so that nobody starves.
const (
	guardShards = 256
	stripeShift = 20
)

// extentGuard guards one logical unit's medium.
type extentGuard struct{ shards [guardShards]shard }

// closed in a shard's word says that whoever comes must queue: the shard is
// held exclusively or somebody waits already. The other bits count the shared
// holders. It changes under mu only.
const closed = 1 << 63

// shard fills a cache line, so that threads that write different stripes do
// not disturb each other.
type shard struct {
	word      atomic.Uint64
	mu        sync.Mutex // guards all below, and closed
	head      *extentLock
	tail      *extentLock
	exclusive bool // exclusively
	_         [31]byte
}

// sharing is how an operation holds its extent.
type sharing uint8

const (
	unguarded sharing = iota
	shared
	exclusive
)

// extentLock is a segment's place in the extent guard.
type extentLock struct {
	owner *segment
	mode  sharing
	keep  bool        // across several operations, until the segment is released
	first uint16      // shard of the first stripe
	count uint16      // shards in all
	taken uint16      // of them entered
	next  *extentLock // in a shard's queue
}

// cover prepares the lock for an operation on n bytes of the medium at off.
func (h *extentLock) cover(m sharing, off, n int64) {
	first, last := off>>stripeShift, (off+n-1)>>stripeShift
	h.mode, h.first = m, uint16(first%guardShards)
	h.count = uint16(min(last-first+1, guardShards))
}

// acquire enters the shards that are left to enter. False says that the lock
// is queued and that its owner's Run will be called.
func (h *extentLock) acquire() bool {
	if h.mode == unguarded {
		return true
	}
	for h.taken < h.count {
		if !h.shard(h.taken).enter(h) {
			return false
		}
		h.taken++
	}
	return true
}

// try enters all shards of a shared lock without waiting, or none.
func (h *extentLock) try() bool {
	for h.taken < h.count {
		s := h.shard(h.taken)
		if s.word.Add(1)&closed != 0 {
			s.leave(shared)
			h.release()
			return false
		}
		h.taken++
	}
	return true
}

// proceed goes on after a wake: the shard that the lock waited for is entered.
func (h *extentLock) proceed() bool {
	h.taken++
	return h.acquire()
}

// release leaves all entered shards.
func (h *extentLock) release() {
	if h.mode == unguarded {
		return
	}
	for ; h.taken > 0; h.taken-- {
		h.shard(h.taken - 1).leave(h.mode)
	}
	h.mode, h.keep = unguarded, false
}

// shard returns the i-th of the lock's shards in ascending order. An extent
// that wraps around the last shard begins with shard 0.
func (h *extentLock) shard(i uint16) *shard {
	wrapped := max(0, int(h.first)+int(h.count)-guardShards)
	at := int(i)
	if at >= wrapped {
		at += int(h.first) - wrapped
	}
	return &h.owner.nexus().LU.guard.shards[at]
}

// enter holds the shard for h, or queues h and returns false.
func (s *shard) enter(h *extentLock) bool {
	if h.mode == shared {
		if s.word.Add(1)&closed == 0 {
			return true
		}
		s.leave(shared)
	}
	return s.enterOrQueue(h)
}

func (s *shard) enterOrQueue(h *extentLock) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.word.Load()&closed == 0 {
		if h.mode == shared {
			s.word.Add(1)
			return true
		}
		// Whoever still holds it shared will find it closed when leaving.
		if s.word.Or(closed) == 0 {
			s.exclusive = true
			return true
		}
	}
	s.push(h)
	return false
}

// leave ends one lock of the shard.
func (s *shard) leave(m sharing) {
	if m == shared {
		// The count may be that of somebody who only came to find the shard
		// closed: the last to leave looks after the queue in any case.
		if s.word.Add(^uint64(0)) != closed {
			return
		}
	}
	s.mu.Lock()
	if m == exclusive {
		s.exclusive = false
	}
	granted := s.grant()
	s.mu.Unlock()
	wake(granted)
}

// grant lets in who may enter now, in the order of the queue, and returns them
// as a list. The caller holds mu.
func (s *shard) grant() *extentLock {
	var first *extentLock
	last := &first
	for !s.exclusive {
		h := s.head
		if h == nil {
			s.word.And(^uint64(closed))
			break
		}
		if h.mode == shared {
			s.word.Add(1)
		} else if s.word.Load() != closed {
			break
		} else {
			s.exclusive = true
		}
		s.pop()
		*last, last = h, &h.next
	}
	return first
}

// wake tells the owners on the list. A woken lock may be queued again at once.
func wake(h *extentLock) {
	for h != nil {
		next := h.next
		h.next = nil
		c := h.owner.cmd
		c.Port.Wake(c, h.owner)
		h = next
	}
}

func (s *shard) push(h *extentLock) {
	if s.tail == nil {
		s.head = h
	} else {
		s.tail.next = h
	}
	s.tail = h
}

func (s *shard) pop() {
	h := s.head
	s.head, h.next = h.next, nil
	if s.head == nil {
		s.tail = nil
	}
}
