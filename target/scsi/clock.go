package scsi

import (
	"sync/atomic"
	"time"
)

// TIMESTAMP ORIGIN (SPC-4 clause 5.18).
const (
	timestampSincePowerOn = 0 // milliseconds since the logical unit began
	timestampSet          = 2 // SET TIMESTAMP gave it
)

// clock is a device clock: milliseconds that initiators may set.
type clock struct {
	began  time.Time
	origin atomic.Pointer[clockOrigin] // nil until it is set
}

// clockOrigin is what an initiator set a clock to and when.
type clockOrigin struct {
	at time.Time
	ms uint64
}

// read returns the timestamp and its origin.
func (k *clock) read(now time.Time) (ms uint64, origin byte) {
	if o := k.origin.Load(); o != nil {
		return o.ms + uint64(now.Sub(o.at).Milliseconds()), timestampSet
	}
	return uint64(now.Sub(k.began).Milliseconds()), timestampSincePowerOn
}
