package backstore

// Stamp tells whether what was read from a store some time ago is still what it
// holds. The words mean something only to the store's own kind.
type Stamp struct {
	Medium [3]uint64 // which medium it is: its Identity
	State  [3]uint64 // changes when anybody writes to it: see Device
}

// Device reports whether it is that of a block device, whose state are the kernel's
// sequence number of the device, and the sectors written and discarded; that of a
// file are size in bytes, mtime and ctime in nanoseconds.
func (s Stamp) Device() bool { return s.Medium[0]&deviceBit != 0 }

// Stamper is a Store that has a stamp. Who keeps its data beyond Close takes one
// before, when all that was written has been flushed, and compares it with
// Opened of the store that is opened later.
type Stamper interface {
	// Opened returns the stamp as it was before opening changed anything, and
	// false if there was none.
	Opened() (Stamp, bool)
	// Stamp returns that of now.
	Stamp() (Stamp, error)
}
