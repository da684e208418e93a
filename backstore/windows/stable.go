package windows

import (
	"sync"
	"sync/atomic"
)

// unflushed says whether a device has changes that a power cut may take.
type unflushed struct {
	flushing sync.Mutex  // held while the device is flushed: others may rely on that once it has ended
	changed  atomic.Bool // a change has ended since a flush began
}

// end notes that a change has ended, well or not, before anybody is told: a flush that
// began before it may not have it.
func (u *unflushed) end() { u.changed.Store(true) }

// flush flushes the device, if anything has ended since the last flush began.
func (u *unflushed) flush(d *disk) error {
	u.flushing.Lock()
	defer u.flushing.Unlock()
	if !u.changed.Swap(false) {
		return nil
	}
	err := d.flush()
	if err != nil {
		u.end()
	}
	return err
}
