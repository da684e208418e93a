package scsi

import (
	"lunar/target/scsi/sense"
	"lunar/target/scsi/thirdparty"
)

// copyDest is a logical unit that a copy writes to: thirdparty.Destination.
type copyDest struct {
	lu     *LogicalUnit
	before *deferredError // the last one when the copy began
	moment uint64         // of the copy's last write, if it may be volatile; else 0
}

func newCopyDest(lu *LogicalUnit) *copyDest {
	return &copyDest{lu: lu, before: lu.lastDeferred.Load()}
}

// Is implements thirdparty.Destination.
func (d *copyDest) Is(other thirdparty.Destination) bool { return other.(*copyDest).lu == d.lu }

// Written implements thirdparty.Destination.
func (d *copyDest) Written() {
	if d.lu.state.Load().WriteCache {
		d.moment = d.lu.stability.now()
	}
}

// Lost implements thirdparty.Destination.
func (d *copyDest) Lost() *sense.Data {
	e := d.lu.lastDeferred.Load()
	if e == nil || e == d.before || d.moment == 0 || d.lu.stability.covers(d.moment) || d.lu.stability.covers(e.moment) {
		return nil
	}
	return &e.sense
}
