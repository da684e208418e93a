package backstore

import (
	"sync/atomic"

	"lunar/backstore/internal/changes"
)

// Watched is a Stamper that tells when its own operations change its stamp. Who notes a
// stamp while it is Quiet, and finds another later, knows of somebody else.
type Watched interface {
	Stamper
	// Watch has the store put Disturbed into word before it begins anything that
	// changes its stamp, unless that is there. The word must last until Watch(nil).
	Watch(word *atomic.Uint64)
	// Quiet counts the changes that have begun, and reports whether all have ended.
	Quiet() (begun uint64, quiet bool)
	// Exact reports whether each change by this host makes another stamp at once, with
	// times by this host's clock. A file system in the network has another clock, and a device
	// behind the page cache is written at any time.
	Exact() bool
}

// Disturbed is what Watch puts into its word: no bit that flips makes it another.
const Disturbed = changes.Disturbed
