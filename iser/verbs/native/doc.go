// Package native is verbs on the RDMA devices of this host, through libibverbs
// and librdmacm. It is built with the tag rdma, which needs cgo and the headers
// of both libraries; without it Open says so. The libraries are opened at run
// time: a binary with this in it starts without them, and Open says what is
// missing.
package native

import "errors"

// ErrNotBuilt says that the binary was built without RDMA.
var ErrNotBuilt = errors.New("built without RDMA (tag rdma, which make sets where libibverbs-dev and librdmacm-dev are installed)")
