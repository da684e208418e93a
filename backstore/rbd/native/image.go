//go:build linux && cgo && rbd

package native

// #include "shim.h"
import "C"

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"lunar/backstore/rbd"
)

// textMost is how long texts are that librbd returns.
const textMost = 8192

// image implements rbd.Image.
type image struct {
	pool, image unsafe.Pointer // rados_ioctx_t, rbd_image_t
	cluster     unsafe.Pointer // rados_t
	name        string
	watch       C.uint64_t
	notices     *os.File // eventfd that librbd writes; nil: read-only
	changed     chan struct{}
}

// Open implements rbd.Client.
func (c *client) Open(name rbd.Name, readOnly bool) (rbd.Image, error) {
	pool, space, img := text(name.Pool), text(name.Namespace), text(name.Image)
	defer free(pool, space, img)
	i, only := &image{cluster: c.cluster, name: name.Image, changed: make(chan struct{}, 1)}, C.int(0)
	if readOnly {
		only = 1
	}
	if r := C.lr_open(c.cluster, pool, space, img, only, &i.pool, &i.image); r < 0 {
		return nil, failed("rbd_open", r)
	}
	if readOnly {
		return i, nil
	}
	if err := i.listen(); err != nil {
		C.lr_close(i.pool, i.image)
		return nil, err
	}
	return i, nil
}

// listen has librbd tell of changes.
func (i *image) listen() error {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return fmt.Errorf("eventfd: %w", err)
	}
	i.notices = os.NewFile(uintptr(fd), "changes of an image")
	if r := C.lr_watch(i.image, C.int(fd), &i.watch); r < 0 {
		return errors.Join(failed("rbd_update_watch", r), i.notices.Close())
	}
	go i.hear()
	return nil
}

func (i *image) hear() {
	defer close(i.changed)
	var count [8]byte
	for {
		if _, err := i.notices.Read(count[:]); err != nil {
			return
		}
		select {
		case i.changed <- struct{}{}:
		default: // nobody has taken the last one yet
		}
	}
}

// Changed implements rbd.Image.
func (i *image) Changed() <-chan struct{} { return i.changed }

// Close implements rbd.Image.
func (i *image) Close() error {
	var r C.int
	if i.notices == nil {
		close(i.changed)
	} else {
		r = C.lr_unwatch(i.image, i.watch)
	}
	err := errors.Join(failed("rbd_update_unwatch", r), failed("rbd_close", C.lr_close(i.pool, i.image)))
	if i.notices != nil { // librbd writes to it no more
		err = errors.Join(err, i.notices.Close())
	}
	return err
}

// Geometry implements rbd.Image.
func (i *image) Geometry() (rbd.Geometry, error) {
	var g C.lr_geometry
	if r := C.lr_stat(i.pool, i.image, &g); r < 0 {
		return rbd.Geometry{}, failed("rbd_stat", r)
	}
	return rbd.Geometry{
		ID: C.GoString(&g.id[0]), Pool: int64(g.pool), Size: int64(g.size), Object: int64(g.object),
		StripeUnit: int64(g.stripe), Lockable: g.lockable != 0,
	}, nil
}

// answer calls f with room for a text.
func answer(call string, f func(to *C.char, n C.size_t) C.int) (string, C.int, error) {
	var buf [textMost]C.char
	r := f(&buf[0], textMost)
	return C.GoString(&buf[0]), r, failed(call, r)
}

// Setting implements rbd.Image.
func (i *image) Setting(option string) (string, bool, error) {
	name := text(option)
	defer free(name)
	value, r, err := answer("rbd_config_image_list", func(to *C.char, n C.size_t) C.int { return C.lr_setting(i.image, name, to, n) })
	return value, r > 0, err
}

// Resize implements rbd.Image.
func (i *image) Resize(size int64) error {
	return failed("rbd_resize2", C.lr_resize(i.image, C.uint64_t(size)))
}

// Mapped implements rbd.Image.
func (i *image) Mapped(off, n int64) (bool, int64, error) {
	var length C.uint64_t
	r := C.lr_mapped(i.image, C.uint64_t(off), C.uint64_t(n), 1, &length)
	return r > 0, int64(length), failed("rbd_diff_iterate2", r)
}

// Owner implements rbd.Image.
func (i *image) Owner() (string, error) {
	owner, _, err := answer("rbd_lock_get_owners", func(to *C.char, n C.size_t) C.int { return C.lr_owner(i.image, to, n) })
	return owner, err
}

// Owned implements rbd.Image.
func (i *image) Owned() bool { return C.lr_owned(i.image) > 0 }

// Watchers implements rbd.Image.
func (i *image) Watchers() ([]string, error) {
	list, _, err := answer("rbd_watchers_list", func(to *C.char, n C.size_t) C.int { return C.lr_watchers(i.image, to, n) })
	return strings.Fields(list), err
}

// Acquire implements rbd.Image.
func (i *image) Acquire() error { return failed("rbd_lock_acquire", C.lr_acquire(i.image)) }

// Break implements rbd.Image.
func (i *image) Break(owner string) error {
	name := text(owner)
	defer free(name)
	return failed("rbd_lock_break", C.lr_break(i.image, name))
}

// Note implements rbd.Image.
func (i *image) Note(name string) (string, error) {
	key := text(name)
	defer free(key)
	note, _, err := answer("rbd_metadata_get", func(to *C.char, n C.size_t) C.int { return C.lr_note(i.image, key, to, n) })
	return note, err
}

// Annotate implements rbd.Image.
func (i *image) Annotate(name, note string) error {
	key, value := text(name), text(note)
	defer free(key, value)
	return failed("rbd_metadata_set", C.lr_annotate(i.image, key, value))
}
