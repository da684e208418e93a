//go:build linux && cgo && rbd

package main

/*
#cgo CFLAGS: -D_GNU_SOURCE -Wall
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>

// The blocking calls of librbd, as go-ceph makes them.
static ssize_t (*rbd_read)(void *image, uint64_t off, size_t n, char *buf);
static ssize_t (*rbd_write)(void *image, uint64_t off, size_t n, const char *buf);
static int (*rbd_close)(void *image);
static void (*rados_shutdown)(void *cluster);

static int open_image(const char *config, const char *keyring, const char *pool, const char *name, void **cluster, void **image)
{
	void *rados = dlopen("librados.so.2", RTLD_NOW), *rbd = dlopen("librbd.so.1", RTLD_NOW), *io;
	int (*create)(void **, const char *, const char *, uint64_t), (*file)(void *, const char *), (*set)(void *, const char *, const char *);
	int (*connect)(void *), (*pools)(void *, const char *, void **), (*open)(void *, const char *, void **, const char *), r;

	if (!rados || !rbd)
		return -2;
	create = dlsym(rados, "rados_create2"), file = dlsym(rados, "rados_conf_read_file"), set = dlsym(rados, "rados_conf_set");
	connect = dlsym(rados, "rados_connect"), pools = dlsym(rados, "rados_ioctx_create"), open = dlsym(rbd, "rbd_open");
	rbd_read = dlsym(rbd, "rbd_read"), rbd_write = dlsym(rbd, "rbd_write"), rbd_close = dlsym(rbd, "rbd_close");
	rados_shutdown = dlsym(rados, "rados_shutdown");
	if ((r = create(cluster, "ceph", "client.admin", 0)) || (r = file(*cluster, config)) || (r = set(*cluster, "keyring", keyring)) ||
	    (r = set(*cluster, "rbd_cache", "false")) || (r = connect(*cluster)) || (r = pools(*cluster, pool, &io)))
		return r;
	return open(io, name, image, NULL);
}

static ssize_t do_read(void *image, uint64_t off, size_t n, char *buf) { return rbd_read(image, off, n, buf); }
static ssize_t do_write(void *image, uint64_t off, size_t n, const char *buf) { return rbd_write(image, off, n, buf); }
static void close_image(void *cluster, void *image) { rbd_close(image); rados_shutdown(cluster); }
*/
import "C"

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"lunar/backstore/rbd"
)

// blocking has a goroutine for each operation under way.
func (o *options) blocking(c *cluster, image rbd.Name, write bool) (f figure, err error) {
	var cluster, handle unsafe.Pointer
	a := c.account()
	texts := []*C.char{C.CString(a.Config), C.CString(a.Keyring), C.CString(image.Pool), C.CString(image.Image)}
	r := C.open_image(texts[0], texts[1], texts[2], texts[3], &cluster, &handle)
	for _, t := range texts {
		C.free(unsafe.Pointer(t))
	}
	if r != 0 {
		return f, fmt.Errorf("open: %w", syscall.Errno(-r))
	}
	defer C.close_image(cluster, handle)
	var ops atomic.Int64
	var failed atomic.Int64
	var stop atomic.Bool
	var users sync.WaitGroup
	for i := range depth {
		users.Go(func() {
			random, data := rand.New(rand.NewPCG(uint64(i), 1)), memory(blockBytes)
			defer syscall.Munmap(data)
			for !stop.Load() {
				off, buf := C.uint64_t(random.Int64N(imageBytes/blockBytes)*blockBytes), (*C.char)(unsafe.Pointer(&data[0]))
				var n C.ssize_t
				if write {
					n = C.do_write(handle, off, blockBytes, buf)
				} else {
					n = C.do_read(handle, off, blockBytes, buf)
				}
				if n < 0 {
					failed.Store(int64(n))
					return
				}
				ops.Add(1)
			}
		})
	}
	began, time0, before := processTime(), time.Now(), ops.Load()
	time.Sleep(time.Duration(o.Seconds) * time.Second)
	done := ops.Load() - before
	f = figure{float64(done) / time.Since(time0).Seconds(), (processTime() - began) / time.Duration(max(done, 1))}
	stop.Store(true)
	users.Wait()
	if n := failed.Load(); n < 0 {
		err = syscall.Errno(-n)
	}
	return f, err
}
