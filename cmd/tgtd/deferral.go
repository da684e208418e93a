package main

import (
	"sync"

	"lunar/target/scsi"
)

// deferral brings failures of background writing to the logical unit, which is
// made after the store that fails.
type deferral struct {
	mu struct {
		sync.Mutex
		unit *scsi.LogicalUnit
		off  int64
		err  error // before there was a unit
	}
}

// report is called when data that were acknowledged before, from byte off on,
// could not be written.
func (d *deferral) report(off int64, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.unit == nil {
		d.mu.off, d.mu.err = off, err
		return
	}
	d.mu.unit.DeferredError(off, err)
}

func (d *deferral) bind(lu *scsi.LogicalUnit) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.unit = lu; d.mu.err != nil {
		lu.DeferredError(d.mu.off, d.mu.err)
	}
}
