package scsi

import (
	"lunar/target/scsi/sense"
	"lunar/target/scsi/thirdparty"
)

// copyDest is a logical unit that a copy writes to: thirdparty.Destination.
type copyDest struct {
	lu     *LogicalUnit
	before *deferredError // the last one when the copy began
	flush  uint64         // that covers the copy's last write, if that may be volatile; else 0
}

func newCopyDest(lu *LogicalUnit) *copyDest {
	return &copyDest{lu: lu, before: lu.lastDeferred.Load()}
}

// Is implements thirdparty.Destination.
func (d *copyDest) Is(other thirdparty.Destination) bool { return other.(*copyDest).lu == d.lu }

// Written implements thirdparty.Destination.
func (d *copyDest) Written() {
	if d.lu.state.Load().WriteCache {
		d.flush = d.lu.stability.next()
	}
}

// Lost implements thirdparty.Destination.
func (d *copyDest) Lost() *sense.Data {
	e := d.lu.lastDeferred.Load()
	if e == nil || e == d.before || d.flush == 0 || !e.lost && d.lu.stability.covers(d.flush) || d.lu.isMadeUp(e) {
		return nil
	}
	return &e.sense
}
