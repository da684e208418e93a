package uring

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"lunar/internal/tcppair"
)

// The kernel's numbers of what only BenchmarkSend uses.
const (
	opSend   = 26
	opSendZC = 47

	moreFollows  = 1 << 1 // of a completion: another one of the same request follows
	notification = 1 << 3 // that one: the memory is free again
)

// BenchmarkSend is sending over loopback TCP through the ring, with a copy and
// without (send_zc), beside BenchmarkSend of package evloop: what docs/reports/performance.md
// decides by.
//
//	go test ./internal/uring -run NONE -bench Send -cpu 2
func BenchmarkSend(b *testing.B) {
	for _, size := range []int{4 << 10, 256 << 10} {
		for _, way := range []struct {
			name   string
			opcode uint8
		}{{"send", opSend}, {"send_zc", opSendZC}} {
			b.Run(fmt.Sprintf("%d KiB/%s", size>>10, way.name), func(b *testing.B) {
				runtime.LockOSThread() // the ring's thread
				defer runtime.UnlockOSThread()
				from, to := tcppair.New(b)
				ring, err := Setup(8)
				if err != nil {
					b.Skipf("no io_uring: %v", err)
				}
				defer ring.Close()
				if err := ring.Enable(); err != nil {
					b.Fatal(err)
				}
				read := make(chan int)
				go tcppair.Drain(to, false, read)
				data := make([]byte, size)
				b.SetBytes(int64(size))
				sent := 0
				for b.Loop() {
					n, err := sendOne(ring, way.opcode, from, data)
					if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP) {
						b.Skipf("the kernel refuses: %v", err)
					}
					if err != nil {
						b.Fatal(err)
					}
					sent += n
				}
				_ = unix.Shutdown(from, unix.SHUT_WR)
				if n := <-read; n != sent {
					b.Errorf("%d bytes have come, expected %d", n, sent)
				}
			})
		}
	}
}

// sendOne sends all of data and waits until its memory is free.
func sendOne(r *Ring, opcode uint8, fd int, data []byte) (int, error) {
	var o Op
	var done sendDone
	o.transfer(opcode, fd, unsafe.Pointer(&data[0]), len(data), 0, unix.MSG_WAITALL|unix.MSG_NOSIGNAL)
	r.Queue(&o, &done)
	if err := r.Submit(); err != nil {
		return 0, err
	}
	sent := 0
	for !done {
		if r.cqHead.Load() == r.cqTail.Load() {
			if errno := await(r.fd); errno != 0 && errno != unix.EINTR {
				return 0, errno
			}
			continue
		}
		head := r.cqHead.Load()
		e := r.cqes[head&r.cqMask]
		r.cqHead.Store(head + 1)
		if e.flags&notification == 0 {
			if sent = int(e.res); sent < 0 {
				return 0, unix.Errno(-sent)
			}
		}
		if e.flags&moreFollows == 0 {
			r.complete(uint32(e.userData), e.res)
		}
	}
	return sent, nil
}

type sendDone bool

func (d *sendDone) Complete(int32) { *d = true }
