package scsi

import (
	"errors"
	"sync/atomic"
	"time"

	"lunar/backstore"
	"lunar/backstore/protect"
	"lunar/target/scsi/sense"
)

// senseOf tells a store's error in SCSI's words; lba is the first block that
// the operation was about.
//
//   - A full thin provisioned store refuses writes only: DATA PROTECT, SPACE
//     ALLOCATION FAILED WRITE PROTECT (SBC-3 clause 4.7.3.6).
//   - A vanished store will not come back without somebody's help: NOT READY,
//     MANUAL INTERVENTION REQUIRED. Initiators with several paths then fail
//     over instead of taking single blocks for damaged.
//   - A store that shrank no longer has the block: LOGICAL BLOCK ADDRESS OUT OF
//     RANGE.
//   - What the store cannot do at all is no command of this logical unit.
//   - Anything else is damage to the medium at lba.
func senseOf(err error, kind backstore.Kind, lba uint64) sense.Data {
	var wrong *protect.CheckError
	switch {
	case errors.As(err, &wrong):
		return wrongTuple(wrong.LBA, wrong.Field)
	case errors.Is(err, errSanitizing):
		return *sense.SanitizeInProgress
	case errors.Is(err, backstore.ErrNoSpace):
		return *sense.SpaceAllocationFailed
	case errors.Is(err, backstore.ErrReadOnly):
		return *sense.WriteProtected
	case errors.Is(err, backstore.ErrGone):
		return *sense.ManualInterventionRequired
	case errors.Is(err, backstore.ErrOutOfRange):
		return *sense.LBAOutOfRange
	case errors.Is(err, backstore.ErrUnsupported):
		return *sense.InvalidOpcode
	case kind == backstore.Read || kind == backstore.Map:
		return sense.Data{Key: sense.MediumError, ASC: sense.ASCUnrecoveredReadError, InfoValid: true, Info: lba}
	case kind == backstore.Flush || kind == backstore.Wipe:
		return sense.Data{Key: sense.MediumError, ASC: sense.ASCWriteError}
	}
	return sense.Data{Key: sense.MediumError, ASC: sense.ASCWriteError, InfoValid: true, Info: lba}
}

// failOp fails the command because of the segment's operation.
func (c *Command) failOp(s *segment) {
	lu := c.Nexus.LU
	lba := uint64(s.op.Off) >> lu.blockShift
	lu.complain(s.op.Kind, lba, s.op.Err)
	if errors.Is(s.op.Err, backstore.ErrLost) { // the others' data as well, and this was their only sign
		lu.deferError(-1, s.op.Err, c.Nexus)
	}
	if lu.config.Shared && errors.Is(s.op.Err, backstore.ErrGone) { // another server has it, or will
		c.Fail(sense.InTransition)
		return
	}
	c.Fail(c.sense(senseOf(s.op.Err, s.op.Kind, lba)))
}

// complaints keeps a dead store from filling the log.
type complaints struct {
	last    atomic.Int64 // when the last line was written, in Unix nanoseconds
	dropped atomic.Uint64
}

// complainEvery is the time between two lines of one logical unit.
const complainEvery = time.Second

// storeKinds is more than the kinds of operations, and a power of two.
const storeKinds = 16

// StoreErrors counts the operations of commands that the store has failed, by kind, since
// the unit was made.
func (lu *LogicalUnit) StoreErrors(kind backstore.Kind) uint64 {
	return lu.storeErrors[kind&(storeKinds-1)].Load()
}

// complain logs a failed operation, or counts it if the last line is recent.
func (lu *LogicalUnit) complain(kind backstore.Kind, lba uint64, err error) {
	lu.storeErrors[kind&(storeKinds-1)].Add(1)
	q, now := &lu.complaints, time.Now().UnixNano()
	last := q.last.Load()
	if now-last < int64(complainEvery) || !q.last.CompareAndSwap(last, now) {
		q.dropped.Add(1)
		return
	}
	lu.config.Logger.Error("backing store failed", "volume", lu.config.Name, "lba", lba,
		"operation", kind.String(), "error", err, "unlogged", q.dropped.Swap(0))
}
