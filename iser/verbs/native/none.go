//go:build !(linux && cgo && rdma)

package native

import "lunar/iser/verbs"

// Built says whether this binary can use RDMA at all.
const Built = false

// Open returns ErrNotBuilt.
func Open() (verbs.Provider, error) { return nil, ErrNotBuilt }
