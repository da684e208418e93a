//go:build linux && cgo && rbd

package native

// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"lunar/backstore/rbd"
)

// Snap implements rbd.Image.
func (i *image) Snap(name string) error {
	n := text(name)
	defer free(n)
	return failed("rbd_snap_create", C.lr_snap(i.image, n))
}

// Unsnap implements rbd.Image.
func (i *image) Unsnap(name string) error {
	n := text(name)
	defer free(n)
	return failed("rbd_snap_remove", C.lr_unsnap(i.image, n))
}

// Snapshots implements rbd.Image.
func (i *image) Snapshots() (all []rbd.Snapshot, err error) {
	var lines *C.char
	if r := C.lr_snapshots(i.image, &lines); r < 0 {
		return nil, failed("rbd_snap_list", r)
	}
	defer C.free(unsafe.Pointer(lines))
	for line := range strings.Lines(C.GoString(lines)) {
		of := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 4)
		if len(of) < 4 {
			continue // a name with line feeds, which is nobody's here
		}
		var number [3]int64
		for n := range number {
			if number[n], err = strconv.ParseInt(of[n], 10, 64); err != nil {
				return nil, fmt.Errorf("rbd_snap_list: %w", err)
			}
		}
		all = append(all, rbd.Snapshot{Name: of[3], Size: number[0], At: time.Unix(number[1], number[2])})
	}
	return all, nil
}

// Clone implements rbd.Image.
func (i *image) Clone(snapshot string, to rbd.Name) error {
	parent, snap, pool, space, child := text(i.name), text(snapshot), text(to.Pool), text(to.Namespace), text(to.Image)
	defer free(parent, snap, pool, space, child)
	return failed("rbd_clone3", C.lr_clone(i.cluster, i.pool, parent, snap, pool, space, child))
}

// Remove implements rbd.Client.
func (c *client) Remove(name rbd.Name) error {
	pool, space, img := text(name.Pool), text(name.Namespace), text(name.Image)
	defer free(pool, space, img)
	return failed("rbd_remove", C.lr_remove(c.cluster, pool, space, img))
}

// Rename implements rbd.Client.
func (c *client) Rename(from, to rbd.Name) error {
	pool, space, was, is := text(from.Pool), text(from.Namespace), text(from.Image), text(to.Image)
	defer free(pool, space, was, is)
	return failed("rbd_rename", C.lr_rename(c.cluster, pool, space, was, is))
}

// Listed implements rbd.Client.
func (c *client) Listed(in rbd.Name, id string) (string, error) {
	pool, space, of := text(in.Pool), text(in.Namespace), text(id)
	defer free(pool, space, of)
	name, _, err := answer("rbd_list2", func(to *C.char, n C.size_t) C.int { return C.lr_listed(c.cluster, pool, space, of, to, n) })
	return name, err
}

// Unname implements rbd.Client.
func (c *client) Unname(name rbd.Name, id string) error {
	pool, space, img, of := text(name.Pool), text(name.Namespace), text(name.Image), text(id)
	defer free(pool, space, img, of)
	return failed("rados_remove", C.lr_unname(c.cluster, pool, space, img, of))
}
