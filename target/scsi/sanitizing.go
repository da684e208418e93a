package scsi

import (
	"sync/atomic"
	"time"

	"lunar/target/scsi/sense"
)

// sanitizing is a sanitize operation of a logical unit: while State points to
// it, nothing else has access to the medium. It goes on without the initiator
// that asked for it, whatever becomes of it.
type sanitizing struct {
	passes  int
	invert  bool // between passes
	erase   bool // in the end everything is released
	crypto  bool // it is the key that is replaced
	exit    bool // a failure may be left by EXIT FAILURE MODE
	pattern []byte
	total   uint64
	done    atomic.Uint64 // bytes, for the progress
	failed  atomic.Bool
	began   time.Time
	wiped   bool // what the store keeps beside the medium
}

// sense tells that the operation is going on, or has failed.
func (z *sanitizing) sense() sense.Data {
	if z.failed.Load() {
		return *sense.SanitizeFailed
	}
	progress := min(0xffff, z.done.Load()>>4*0x10000/(z.total>>4+1))
	return sense.Data{Key: sense.NotReady, ASC: sense.ASCSanitizeInProgress, ProgressValid: true, Progress: uint16(progress)}
}

// SanitizeNote is what is to be known of a sanitize operation after a restart, from
// before it changes anything until it has succeeded or its failure was given up: a
// medium that was overwritten in part must not be taken for one that is sanitized.
type SanitizeNote struct {
	Exit bool `json:"exit"` // EXIT FAILURE MODE is allowed (AUSE)
}

func (z *sanitizing) note() *SanitizeNote {
	if z == nil {
		return nil
	}
	return &SanitizeNote{Exit: z.exit}
}

// interrupted is the operation of a note: one that has failed.
func interrupted(n *SanitizeNote) *sanitizing {
	if n == nil {
		return nil
	}
	z := &sanitizing{exit: n.Exit}
	z.failed.Store(true)
	return z
}
