package places

import (
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Rate is how often something may happen: Burst times at once, and once more after
// each Every.
type Rate struct {
	Burst int
	Every time.Duration
}

// Buckets keep a rate for each of many keys. What is kept of a key is the time at
// which its bucket is full again. Of who was not seen for longest it is forgotten
// first, once there are more keys than fit.
type Buckets[K comparable] struct {
	full *simplelru.LRU[K, time.Time]
}

// NewBuckets keeps up to most keys, at least one.
func NewBuckets[K comparable](most int) *Buckets[K] {
	lru, _ := simplelru.NewLRU[K, time.Time](most, nil) // fails for sizes below one alone
	return &Buckets[K]{lru}
}

// Take counts cost times what the key does, if the rate allows it now.
func (b *Buckets[K]) Take(key K, cost int, r Rate, now time.Time) bool {
	full := b.fullAt(key, now)
	next := full.Add(time.Duration(cost) * r.Every)
	if next.Sub(now) > time.Duration(r.Burst)*r.Every {
		return false
	}
	b.full.Add(key, next)
	return true
}

// Delay counts cost times what the key does, whatever the rate says, and returns
// how long it has to wait for it.
func (b *Buckets[K]) Delay(key K, cost int, r Rate, now time.Time) time.Duration {
	next := b.fullAt(key, now).Add(time.Duration(cost) * r.Every)
	b.full.Add(key, next)
	return max(0, next.Sub(now)-time.Duration(r.Burst)*r.Every)
}

func (b *Buckets[K]) fullAt(key K, now time.Time) time.Time {
	if at, ok := b.full.Get(key); ok && at.After(now) {
		return at
	}
	return now
}
