//go:build linux && cgo && rbd

package native

// #include "shim.h"
import "C"

import (
	"sync/atomic"
	"syscall"
	"unsafe"

	"lunar/backstore/rbd"
)

// queue implements rbd.Queue.
type queue struct {
	q     *C.lr_queue
	ios   []*C.lr_io // by token
	taken *C.lr_io   // from the list, and not reaped yet: the oldest
	armed bool
}

// Queue implements rbd.Library.
func (library) Queue() (rbd.Queue, error) {
	q := &queue{}
	if r := C.lr_queue_new(&q.q); r < 0 {
		return nil, failed("eventfd", r)
	}
	return q, nil
}

// ended is the list that librbd's threads push to.
func (q *queue) ended() *unsafe.Pointer { return (*unsafe.Pointer)(unsafe.Pointer(&q.q.ended)) }

// Start implements rbd.Queue.
func (q *queue) Start(i rbd.Image, io rbd.IO, token uint32) syscall.Errno {
	for int(token) >= len(q.ios) {
		fresh := C.lr_io_new(q.q, C.uint32_t(len(q.ios)))
		if fresh == nil {
			return syscall.ENOMEM
		}
		q.ios = append(q.ios, fresh)
	}
	r := C.lr_start(q.ios[token], i.(*image).image, C.int(io.Kind), C.uint64_t(io.Off), C.size_t(io.Len), io.Data)
	return syscall.Errno(-min(r, 0))
}

// Reap implements rbd.Queue.
func (q *queue) Reap(out []rbd.Ended) (n int) {
	if q.armed {
		q.armed = false
		q.asleep().Store(0)
	}
	for n < len(out) {
		if q.taken == nil && !q.take() {
			break
		}
		io := q.taken
		q.taken = io.next
		out[n] = rbd.Ended{Token: uint32(io.token), Result: int64(io.result)}
		n++
	}
	return n
}

// take empties the list. What ended first is at its end.
func (q *queue) take() bool {
	if atomic.LoadPointer(q.ended()) == nil {
		return false
	}
	for io := (*C.lr_io)(atomic.SwapPointer(q.ended(), nil)); io != nil; {
		io, io.next, q.taken = io.next, q.taken, io
	}
	return true
}

func (q *queue) asleep() *atomic.Int32 { return (*atomic.Int32)(unsafe.Pointer(&q.q.asleep)) }

// Arm implements rbd.Queue.
func (q *queue) Arm() (came bool) {
	q.armed = true
	q.asleep().Store(1)
	return q.taken != nil || atomic.LoadPointer(q.ended()) != nil
}

// FD implements rbd.Queue.
func (q *queue) FD() int { return int(q.q.fd) }

// Close implements rbd.Queue.
func (q *queue) Close() {
	for _, io := range q.ios {
		C.lr_io_free(io)
	}
	C.lr_queue_free(q.q)
}
