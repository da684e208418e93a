//go:build !(linux && cgo && rbd)

package native

import "lunar/backstore/rbd"

// Built says whether this binary can use RBD at all.
const Built = false

// Open returns ErrNotBuilt.
func Open() (rbd.Library, error) { return nil, ErrNotBuilt }

// Version returns ErrNotBuilt.
func Version() (string, error) { return "", ErrNotBuilt }
