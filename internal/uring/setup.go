package uring

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

const disabledFile = "/proc/sys/kernel/io_uring_disabled"

// tiers are the ways to set a ring up, best first. Deferred task work completes
// requests only when the owning thread asks, instead of interrupting it; kernels
// before 6.1 refuse it with EINVAL, and before 5.19 the cooperative one too.
var tiers = []uint32{
	setupSubmitAll | setupSingleIssuer | setupDeferTaskrun | setupTaskrunFlag | setupDisabled,
	setupSubmitAll | setupCoopTaskrun | setupTaskrunFlag | setupDisabled,
	setupDisabled,
}

// Setup creates a ring of entries submissions, rounded up to a power of two and
// clamped by the kernel, and twice as many in flight. The ring is disabled until
// the thread that is to own it calls Enable. The error says why the kernel
// refused and is meant for the operator.
func Setup(entries uint32) (*Ring, error) {
	if entries == 0 {
		return nil, errors.New("io_uring of 0 entries: expected at least 1")
	}
	var p params
	fd, errno := setupTier(entries, &p)
	if errno != 0 {
		return nil, refusal(errno)
	}
	r := &Ring{fd: fd, wake: -1, flags: p.flags}
	if err := errors.Join(r.mapQueues(&p), r.openWake()); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func (r *Ring) openWake() error {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return fmt.Errorf("io_uring: eventfd: %w", err)
	}
	r.wake = fd
	word := int32(fd)
	if errno := register(r.fd, registerEventFD, unsafe.Pointer(&word), 1); errno != 0 {
		return fmt.Errorf("io_uring: register eventfd: %w", errno)
	}
	return nil
}

func setupTier(entries uint32, p *params) (fd int, errno unix.Errno) {
	for _, flags := range tiers {
		*p = params{flags: flags | setupClamp}
		if fd, errno = setup(entries, p); errno != unix.EINVAL {
			break
		}
	}
	return fd, errno
}

// refusal explains an errno of io_uring_setup.
func refusal(errno unix.Errno) error {
	reason := ""
	switch errno {
	case unix.ENOSYS:
		reason = " (this kernel, or a seccomp profile, has no io_uring)"
	case unix.EPERM, unix.EACCES:
		reason = " (a seccomp profile or " + disabledFile + disabledState() + " forbids it)"
	case unix.ENOMEM:
		reason = " (kernel memory, or the memlock limit of this process)"
	case unix.EINVAL:
		reason = " (the kernel is older than 5.10)"
	}
	return fmt.Errorf("io_uring is not available: %w%s", errno, reason)
}

// disabledState returns "=<value>" of the sysctl, or nothing.
func disabledState() string {
	b, err := os.ReadFile(disabledFile)
	if err != nil {
		return ""
	}
	return "=" + strings.TrimSpace(string(b))
}

// mapQueues maps the queues that the kernel made.
func (r *Ring) mapQueues(p *params) error {
	if p.features&(featSingleMmap|featNoDrop|featSubmitStable) != featSingleMmap|featNoDrop|featSubmitStable {
		return fmt.Errorf("io_uring features %#x: expected SINGLE_MMAP, NODROP and SUBMIT_STABLE", p.features)
	}
	size := max(p.sq.array+4*p.sqEntries, p.cq.cqes+uint32(unsafe.Sizeof(cqe{}))*p.cqEntries)
	var err error
	if r.sqMem, err = mapRing(r.fd, offSQRing, int(size)); err != nil {
		return err
	}
	if r.sqeMem, err = mapRing(r.fd, offSQEs, int(p.sqEntries)*int(unsafe.Sizeof(sqe{}))); err != nil {
		return err
	}
	r.attach(p)
	return nil
}

func mapRing(fd int, off int64, size int) ([]byte, error) {
	mem, err := unix.Mmap(fd, off, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return nil, fmt.Errorf("io_uring: map %d bytes at %#x: %w", size, off, err)
	}
	return mem, nil
}

// attach points the Ring into the mapped memory. Submission array entry i always
// names entry i, so it is written once.
func (r *Ring) attach(p *params) {
	word := func(off uint32) *atomic.Uint32 { return (*atomic.Uint32)(unsafe.Pointer(&r.sqMem[off])) }
	r.sqTail, r.sqFlags = word(p.sq.tail), word(p.sq.flags)
	r.cqHead, r.cqTail, r.cqFlags = word(p.cq.head), word(p.cq.tail), word(p.cq.flags)
	r.sqMask, r.cqMask = word(p.sq.mask).Load(), word(p.cq.mask).Load()
	r.sqes = unsafe.Slice((*sqe)(unsafe.Pointer(&r.sqeMem[0])), p.sqEntries)
	r.cqes = unsafe.Slice((*cqe)(unsafe.Pointer(&r.sqMem[p.cq.cqes])), p.cqEntries)
	for i := range p.sqEntries {
		word(p.sq.array + 4*i).Store(i)
	}
	r.slots = make([]*Op, p.cqEntries)
	r.idle = make([]uint32, p.cqEntries)
	for i := range r.idle {
		r.idle[i] = uint32(i)
	}
}

// Enable starts the ring and makes the calling thread its owner: only that
// thread may Submit and Reap afterwards, so its goroutine must be locked to it.
func (r *Ring) Enable() error {
	if errno := register(r.fd, registerEnableRings, nil, 0); errno != 0 {
		return fmt.Errorf("io_uring: enable: %w", errno)
	}
	return nil
}

// Deferred reports whether the ring completes requests only when its thread
// asks (SINGLE_ISSUER and DEFER_TASKRUN).
func (r *Ring) Deferred() bool { return r.flags&setupDeferTaskrun != 0 }

// Close frees the ring. The kernel may still write into the buffers of Ops in
// flight: Drain first. Closing again does nothing.
func (r *Ring) Close() error {
	if r.fd < 0 {
		return nil
	}
	err := errors.Join(unmap(&r.sqMem), unmap(&r.sqeMem), unix.Close(r.fd))
	if r.wake >= 0 {
		err = errors.Join(err, unix.Close(r.wake))
	}
	r.fd, r.wake = -1, -1
	return err
}

func unmap(mem *[]byte) error {
	if *mem == nil {
		return nil
	}
	err := unix.Munmap(*mem)
	*mem = nil
	return err
}
