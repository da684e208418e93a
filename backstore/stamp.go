package backstore

// Stamp tells whether what was read from a store some time ago is still what it
// holds. The words mean something only to the store's own kind.
type Stamp struct {
	Medium [3]uint64 // which medium it is
	State  [3]uint64 // changes when anybody writes to it
}

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
