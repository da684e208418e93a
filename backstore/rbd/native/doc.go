// Package native is backstore/rbd on Ceph clusters, through librbd and librados. It is
// built with the tag rbd, which needs cgo, but no header of Ceph: the part of the libraries'
// interfaces that is used is declared here. They are opened at run time: a binary with this
// in it starts without them, and Open says what is missing.
//
// Operations end in a callback on a thread of librbd's. It pushes them on the list of their
// queue, which lies in memory that is never freed, for a callback may look at it after the
// event thread has taken the operation; the event thread takes the whole list at once,
// without a call to C.
package native

import "errors"

// ErrNotBuilt says that the binary was built without RBD.
var ErrNotBuilt = errors.New("built without RBD (tag rbd, which make sets where there is a C compiler; static binaries and container images are without it)")
