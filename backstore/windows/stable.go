package windows

import (
	"errors"
	"sync"
	"sync/atomic"
)

// unflushed says whether a device has changes that a power cut may take.
type unflushed struct {
	flushing sync.Mutex  // held while the device is flushed: others may rely on that once it has ended
	changed  atomic.Bool // a change has ended since a flush began
	lost     error       // of a flush that nobody has heard of who has changed anything; under flushing
}

// end notes that a change has ended, well or not, before anybody is told: a flush that
// began before it may not have it.
func (u *unflushed) end() { u.changed.Store(true) }

// flush flushes the device, if anything has ended since the last flush began.
func (u *unflushed) flush(d *disk) error {
	u.flushing.Lock()
	defer u.flushing.Unlock()
	lost := u.lost
	u.lost = nil
	if !u.changed.Swap(false) {
		return lost
	}
	err := d.flush()
	if err != nil {
		u.end()
	}
	return errors.Join(lost, err)
}

// flushBeside flushes the device in the background. If that fails, the next flush does: the device
// may have told of what others have changed, and tells it once.
func (u *unflushed) flushBeside(d *disk) error {
	u.flushing.Lock()
	defer u.flushing.Unlock()
	err := d.flush()
	if err != nil {
		u.lost = err
	}
	return err
}
