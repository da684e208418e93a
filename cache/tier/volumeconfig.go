package tier

import (
	"fmt"
	"time"

	"lunar/cache"
)

// Policy says when a write is acknowledged.
type Policy uint8

// The policies.
const (
	Through Policy = iota // when the store below has it
	Back                  // when the cache has it
)

var policyNames = [...]string{Through: "through", Back: "back"}

// String names the policy as the configuration does.
func (p Policy) String() string {
	if int(p) < len(policyNames) {
		return policyNames[p]
	}
	return fmt.Sprintf("policy %d", uint8(p))
}

// VolumeConfig says what the cache does for a volume.
type VolumeConfig struct {
	ID     uint64 // tells the volume from all others, also after a restart
	Name   string // for messages
	Policy Policy
	Adopt  bool // unwritten data go to the store though somebody else has changed it, or it is another

	Admission   string            // lru (default), fussy
	Fussy       cache.FussyParams // of fussy; zero: found in the first accesses
	Replacement string            // see cache.LUConfig
	Min, Max    int64             // bytes of cache that are kept for the volume, and that it may have; 0: none, all
	ReadAhead   int64             // bytes that are read ahead of a sequential reader at most; 0: none

	DirtyLimit int64         // bytes (Back); 0: that of the Cache
	Age        time.Duration // how long data may be dirty before they are written (Back); 0: 5 s
	Retry      time.Duration // first pause after a failed background write, doubled each time up to 30 s; 0: 100 ms
	// OnFlushError hears, on the flusher's thread, when background writing begins
	// to fail, with the first byte of the write that did; may be nil.
	OnFlushError func(off int64, err error)

	// Lapsed reports, on any event thread, that it is not known any more whether somebody
	// else has written: reads then go past the cache, until it is known again. nil: nobody
	// else writes.
	Lapsed func() bool
}

// Changes are what of a VolumeConfig can change while the volume is open; zero
// values mean what they mean there.
type Changes struct {
	Policy     Policy // of a volume that was opened with Back: any; of others: as it is
	Min, Max   int64
	Age        time.Duration
	DirtyLimit int64
}

// fussy is the Admission of cache.Fussy.
const fussy = "fussy"

const (
	defaultAge   = 5 * time.Second
	defaultRetry = 100 * time.Millisecond
	maxRetry     = 30 * time.Second
)

func positive(d, otherwise time.Duration) time.Duration {
	if d <= 0 {
		return otherwise
	}
	return d
}
