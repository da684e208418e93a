package arena

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"lunar/internal/bytesize"
)

// chunk is what one step of Populate touches: a multiple of the usual huge
// pages, small enough that progress is seen.
const chunk = 64 << 20

// Progress is told how many of total bytes are there. It is called by several
// goroutines, but never by two at once, and with rising numbers.
type Progress func(done, total int64)

// Populate makes every page of mem exist, without changing what is in it, with
// the given number of threads. Missing memory is an error here, where touching
// the pages would end the process by SIGBUS. Who binds the memory does so
// before. One thread is the caller's own: without binding, the pages are then of
// its node.
func Populate(mem []byte, threads int, progress Progress) error {
	p := populating{mem: mem, progress: progress}
	var group sync.WaitGroup
	for range min(threads, (len(mem)+chunk-1)/chunk) - 1 {
		group.Go(p.run)
	}
	p.run()
	group.Wait()
	return errors.Join(p.errs...)
}

type populating struct {
	mem      []byte
	next     atomic.Int64
	progress Progress

	mu struct {
		sync.Mutex
		done int64
	}
	errs []error
}

// run takes chunk after chunk until none is left or one has failed.
func (p *populating) run() {
	for {
		first := int(p.next.Add(1)-1) * chunk
		if first >= len(p.mem) {
			return
		}
		part := p.mem[first:min(first+chunk, len(p.mem))]
		if !p.account(int64(len(part)), populate(part)) {
			return
		}
	}
}

func (p *populating) account(n int64, err error) (goOn bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.errs = append(p.errs, err)
		p.next.Store(int64(len(p.mem))) // past the end: nobody begins another chunk
		return false
	}
	p.mu.done += n
	if p.progress != nil {
		p.progress(p.mu.done, int64(len(p.mem)))
	}
	return true
}

// populate asks the kernel, which reports what is missing; kernels before 5.14
// (EINVAL) are left to touching, which the checks before have made safe.
func populate(mem []byte) error {
	err := unix.Madvise(mem, unix.MADV_POPULATE_WRITE)
	for errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) {
		err = unix.Madvise(mem, unix.MADV_POPULATE_WRITE)
	}
	switch {
	case errors.Is(err, unix.EINVAL):
		touch(mem)
		return nil
	case errors.Is(err, unix.EFAULT), errors.Is(err, unix.ENOMEM):
		return fmt.Errorf("arena: the memory ran out while %s were touched: %w", bytesize.Text(int64(len(mem))), err)
	case err != nil:
		return fmt.Errorf("arena: touch %s: %w", bytesize.Text(int64(len(mem))), err)
	}
	return nil
}

// touch writes to every page without changing it.
func touch(mem []byte) {
	for i := 0; i < len(mem); i += os.Getpagesize() {
		atomic.AddUint32((*uint32)(unsafe.Pointer(&mem[i])), 0)
	}
}
