package cache

import (
	"fmt"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// The replacement policies by name. All but "lru" are built on golang-lru: they
// allocate when a block is inserted, and serve as oracles in tests and where
// their hit ratio is worth that.
var replacements = map[string]func(blocks []block) (Replacement, error){
	"":           func(b []block) (Replacement, error) { return newLRUList(b), nil },
	"lru":        func(b []block) (Replacement, error) { return newLRUList(b), nil },
	"golang-lru": func(b []block) (Replacement, error) { return newReferenceLRU(len(b)) },
	"2q":         func(b []block) (Replacement, error) { return newTwoQueue(len(b)) },
}

func newReplacement(name string, blocks []block) (Replacement, error) {
	create, ok := replacements[name]
	if !ok {
		return nil, fmt.Errorf("cache replacement policy %q: expected lru, golang-lru or 2q", name)
	}
	return create(blocks)
}

// referenceLRU is golang-lru's list.
type referenceLRU struct {
	lru *simplelru.LRU[uint32, struct{}]
}

func newReferenceLRU(slots int) (*referenceLRU, error) {
	l, err := simplelru.NewLRU[uint32, struct{}](slots, nil)
	return &referenceLRU{l}, err
}

// Insert implements Replacement.
func (r *referenceLRU) Insert(slot uint32, _ Key) { r.lru.Add(slot, struct{}{}) }

// Touch implements Replacement.
func (r *referenceLRU) Touch(slot uint32) { r.lru.Get(slot) }

// Remove implements Replacement.
func (r *referenceLRU) Remove(slot uint32, _ bool) { r.lru.Remove(slot) }

// Oldest implements Replacement.
func (r *referenceLRU) Oldest(Key) uint32 { return oldest(r.lru) }

// Spare implements Replacement.
func (r *referenceLRU) Spare(slot uint32) { r.lru.Get(slot) }

func oldest[V any](l *simplelru.LRU[uint32, V]) uint32 {
	if slot, _, ok := l.GetOldest(); ok {
		return slot
	}
	return NoSlot
}

// noKey is no block's.
var noKey = Key{^uint32(0), ^uint64(0)}

// twoQueue is 2Q with golang-lru's proportions: a quarter for blocks that were
// used once, and ghosts of half the size, by which a block that comes back goes
// straight to the frequent ones.
type twoQueue struct {
	recent, frequent *simplelru.LRU[uint32, Key]
	ghosts           *simplelru.LRU[Key, struct{}]
	share            int
	returning        Key // a ghost for which room is being made
}

func newTwoQueue(slots int) (*twoQueue, error) {
	recent, err := simplelru.NewLRU[uint32, Key](slots, nil)
	if err != nil {
		return nil, err
	}
	frequent, err := simplelru.NewLRU[uint32, Key](slots, nil)
	if err != nil {
		return nil, err
	}
	ghosts, err := simplelru.NewLRU[Key, struct{}](max(slots/2, 1), nil)
	return &twoQueue{recent, frequent, ghosts, max(slots/4, 1), noKey}, err
}

// Insert implements Replacement.
func (q *twoQueue) Insert(slot uint32, k Key) {
	if q.ghosts.Remove(k) || k == q.returning {
		q.frequent.Add(slot, k)
	} else {
		q.recent.Add(slot, k)
	}
	q.returning = noKey
}

// Touch implements Replacement.
func (q *twoQueue) Touch(slot uint32) {
	if k, ok := q.recent.Peek(slot); ok {
		q.recent.Remove(slot)
		q.frequent.Add(slot, k)
		return
	}
	q.frequent.Get(slot)
}

// Remove implements Replacement.
func (q *twoQueue) Remove(slot uint32, evicted bool) {
	if k, ok := q.recent.Peek(slot); ok {
		q.recent.Remove(slot)
		if evicted {
			q.ghosts.Add(k, struct{}{})
		}
		return
	}
	q.frequent.Remove(slot)
}

// Oldest implements Replacement.
func (q *twoQueue) Oldest(incoming Key) uint32 {
	limit := q.share
	if q.ghosts.Contains(incoming) {
		q.returning = incoming
		limit++
	}
	if n := q.recent.Len(); n >= limit && n > 0 {
		return oldest(q.recent)
	}
	if slot := oldest(q.frequent); slot != NoSlot {
		return slot
	}
	return oldest(q.recent)
}

// Spare implements Replacement.
func (q *twoQueue) Spare(slot uint32) {
	if _, ok := q.recent.Get(slot); !ok {
		q.frequent.Get(slot)
	}
}
