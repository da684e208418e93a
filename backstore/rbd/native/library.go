//go:build linux && cgo && rbd

package native

/*
#cgo CFLAGS: -std=gnu11 -O2 -Wall
#cgo LDFLAGS: -ldl -lpthread
#include <stdlib.h>
#include "shim.h"
#cgo noescape lr_start
#cgo nocallback lr_start
*/
import "C"

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"lunar/backstore/rbd"
)

// Built says whether this binary can use RBD at all.
const Built = true

// load opens the libraries, once.
var load = sync.OnceValue(func() error {
	var text [256]C.char
	if C.lr_load(&text[0], C.size_t(len(text))) != 0 {
		return fmt.Errorf("%s (install Ceph's client library: package librbd1)", C.GoString(&text[0]))
	}
	return nil
})

// Open opens the libraries. The error says what is missing and how to get it.
func Open() (rbd.Library, error) {
	if err := load(); err != nil {
		return nil, err
	}
	return library{}, nil
}

// Version is that of librbd.
func Version() (string, error) {
	if err := load(); err != nil {
		return "", err
	}
	var major, minor, extra C.int
	C.lr_version(&major, &minor, &extra)
	return fmt.Sprintf("%d.%d.%d", major, minor, extra), nil
}

type library struct{}

// failed is the error of a control call that returned r < 0.
func failed(call string, r C.int) error {
	if r >= 0 {
		return nil
	}
	return fmt.Errorf("%s: %w", call, syscall.Errno(-r))
}

// text is memory of C with a Go string, until free is called.
func text(s string) *C.char { return C.CString(s) }

func free(all ...*C.char) {
	for _, p := range all {
		C.free(unsafe.Pointer(p))
	}
}

// options are what an instance is told, after what the configuration file says. Those of
// timeouts are of connecting alone: an operation that was given up could still happen.
var options = []struct{ name, value string }{
	{"rbd_cache", "false"}, {"rbd_persistent_cache_mode", "disabled"},
	{"rbd_blocklist_on_break_lock", "true"}, {"rbd_blacklist_on_break_lock", "true"}, // the older name
	{"rados_osd_op_timeout", "0"}, {"client_mount_timeout", "10"},
	{"ms_async_op_threads", "1"}, {"librados_thread_count", "1"},
	{"rbd_disable_zero_copy_writes", "true"}, // without, librbd 16 never ends a write that fails for want of the lock
	{"rbd_non_blocking_aio", "true"},
	{"log_to_stderr", "false"}, {"err_to_stderr", "false"}, {"log_to_file", "false"},
}

// Connect implements rbd.Library.
func (library) Connect(a rbd.Account) (rbd.Client, error) {
	c := &client{}
	user, config := text("client."+a.User), text(a.Config)
	defer free(user, config)
	if err := (library{}).Lacks(a); err != nil {
		return nil, err
	}
	if r := C.lr_create(user, &c.cluster); r < 0 {
		return nil, failed("rados_create2", r)
	}
	if err := c.connect(a, config); err != nil {
		C.lr_shutdown(c.cluster)
		return nil, err
	}
	return c, nil
}

// Lacks implements rbd.Library. librados would name no file: it says ENOENT or EINVAL only.
func (library) Lacks(a rbd.Account) error {
	for _, path := range []string{a.Config, a.Keyring} {
		if path == "" {
			continue
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		f.Close()
	}
	return nil
}

func (c *client) connect(a rbd.Account, config *C.char) error {
	if r := C.lr_configure(c.cluster, config); r < 0 {
		return failed("rados_conf_read_file "+a.Config, r)
	}
	set := options
	if a.Keyring != "" {
		set = append(set[:len(set):len(set)], struct{ name, value string }{"keyring", a.Keyring})
	}
	for _, o := range set {
		name, value := text(o.name), text(o.value)
		r := C.lr_set(c.cluster, name, value)
		free(name, value)
		if r < 0 && r != -C.int(syscall.ENOENT) { // this version does not know it
			return failed("rados_conf_set "+o.name, r)
		}
	}
	var address [256]C.char
	var fsid [64]C.char
	err := failed("rados_connect", C.lr_connect(c.cluster, &address[0], C.size_t(len(address)), &fsid[0], C.size_t(len(fsid))))
	c.address, c.fsid = C.GoString(&address[0]), C.GoString(&fsid[0])
	return explain(err, a)
}

// explain says what a bare errno of connecting means.
func explain(err error, a rbd.Account) error {
	switch {
	case errors.Is(err, syscall.ETIMEDOUT):
		return fmt.Errorf("no monitor of %s answers: %w", a.Config, err)
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		return fmt.Errorf("the cluster does not accept the key of client.%s: %w", a.User, err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("found no monitor in %s, or no key of client.%s (keyring-file): %w", a.Config, a.User, err)
	}
	return err
}

// client implements rbd.Client.
type client struct {
	cluster       unsafe.Pointer // rados_t
	address, fsid string
}

// Address implements rbd.Client.
func (c *client) Address() string { return c.address }

// Cluster implements rbd.Client.
func (c *client) Cluster() string { return c.fsid }

// Ask implements rbd.Client.
func (c *client) Ask(of rbd.Name) error {
	pool, namespace := text(of.Pool), text(of.Namespace)
	defer free(pool, namespace)
	return failed("rados_stat", C.lr_ask(c.cluster, pool, namespace))
}

// Fence implements rbd.Client.
func (c *client) Fence(address string) error {
	name := text(address)
	defer free(name)
	return failed("rados_blocklist_add", C.lr_fence(c.cluster, name, C.uint32_t(rbd.FenceTime/time.Second)))
}

// Close implements rbd.Client.
func (c *client) Close() error {
	C.lr_shutdown(c.cluster)
	return nil
}
