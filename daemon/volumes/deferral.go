package volumes

import "sync"

// unit is a *scsi.LogicalUnit but in tests.
type unit interface{ DeferredError(off int64, err error) }

// deferral brings failures of background writing to the logical unit, which is
// made after the store that fails.
type deferral struct {
	mu struct {
		sync.Mutex
		unit unit
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

// bind names the unit, which hears of what has failed before.
func (d *deferral) bind(u unit) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.unit = u; d.mu.err != nil {
		u.DeferredError(d.mu.off, d.mu.err)
	}
}
