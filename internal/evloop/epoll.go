package evloop

import (
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxEvents bounds the descriptors that one pass serves.
const maxEvents = 256

// epoll maps descriptors to Pollers. The epoll data of an event is (descriptor,
// generation); Unregister changes the generation, so an event that was fetched
// before it, in the same pass, finds nobody.
type epoll struct {
	fd     int
	slots  []slot // by descriptor
	events [maxEvents]unix.EpollEvent
	coarse bool // no epoll_pwait2: milliseconds only
}

type slot struct {
	poller     Poller
	generation int32
	events     uint32 // noted, see Order
}

func (e *epoll) open() (err error) {
	if e.fd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		e.fd = -1
		return fmt.Errorf("epoll_create1: %w", err)
	}
	return nil
}

func (e *epoll) close() error {
	if e.fd < 0 {
		return nil
	}
	err := unix.Close(e.fd)
	e.fd = -1
	return err
}

func (e *epoll) add(fd int, events uint32, p Poller) error {
	if fd < 0 {
		return fmt.Errorf("register descriptor %d: expected one that is open", fd)
	}
	for fd >= len(e.slots) {
		e.slots = append(e.slots, slot{})
	}
	s := &e.slots[fd]
	if s.poller != nil {
		return fmt.Errorf("register descriptor %d: it is registered already", fd)
	}
	if err := e.ctl(unix.EPOLL_CTL_ADD, fd, events); err != nil {
		return err
	}
	s.poller = p
	return nil
}

func (e *epoll) modify(fd int, events uint32) error {
	if !e.registered(fd) {
		return fmt.Errorf("modify descriptor %d: it is not registered", fd)
	}
	return e.ctl(unix.EPOLL_CTL_MOD, fd, events)
}

func (e *epoll) remove(fd int) error {
	if !e.registered(fd) {
		return fmt.Errorf("unregister descriptor %d: it is not registered", fd)
	}
	s := &e.slots[fd]
	s.poller, s.events = nil, 0
	s.generation++
	return e.ctl(unix.EPOLL_CTL_DEL, fd, 0)
}

func (e *epoll) registered(fd int) bool {
	return fd >= 0 && fd < len(e.slots) && e.slots[fd].poller != nil
}

func (e *epoll) ctl(op, fd int, events uint32) error {
	event := unix.EpollEvent{Events: events, Fd: int32(fd), Pad: e.slots[fd].generation}
	if err := unix.EpollCtl(e.fd, op, fd, &event); err != nil {
		return fmt.Errorf("epoll_ctl descriptor %d: %w", fd, err)
	}
	return nil
}

// dispatch tells the Pollers of the first n fetched events.
func (e *epoll) dispatch(n int) int {
	for i := range n {
		event := e.events[i]
		if s := &e.slots[event.Fd]; s.generation == event.Pad && s.poller != nil {
			s.poller.Ready(event.Events)
		}
	}
	return n
}

// check fetches events without waiting and without telling the Go scheduler.
func (e *epoll) check() int {
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(e.fd), uintptr(unsafe.Pointer(&e.events)), maxEvents, 0, 0, 0)
	return fetched(n, errno)
}

// block waits for events, at most for timeout when that is not negative, and
// lends the processor to other goroutines meanwhile.
func (e *epoll) block(timeout time.Duration) int {
	if e.coarse {
		return e.blockCoarse(timeout)
	}
	var limit *unix.Timespec
	if timeout >= 0 {
		ts := unix.NsecToTimespec(int64(timeout))
		limit = &ts
	}
	n, _, errno := unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(e.fd), uintptr(unsafe.Pointer(&e.events)), maxEvents,
		uintptr(unsafe.Pointer(limit)), 0, 0)
	if errno == unix.ENOSYS || errno == unix.EPERM { // before Linux 5.11, or an old seccomp profile
		e.coarse = true
		return e.blockCoarse(timeout)
	}
	return fetched(n, errno)
}

// blockCoarse rounds up to milliseconds, so that a timer is due when it returns.
func (e *epoll) blockCoarse(timeout time.Duration) int {
	ms := -1
	if timeout >= 0 {
		ms = int((timeout + time.Millisecond - 1) / time.Millisecond)
	}
	n, _, errno := unix.Syscall6(unix.SYS_EPOLL_PWAIT, uintptr(e.fd), uintptr(unsafe.Pointer(&e.events)), maxEvents, uintptr(ms), 0, 0)
	return fetched(n, errno)
}

// fetched turns the result of an epoll wait into a count. Nothing but EINTR is
// possible on a descriptor that is ours.
func fetched(n uintptr, errno unix.Errno) int {
	switch errno {
	case 0:
		return int(n)
	case unix.EINTR:
		return 0
	}
	panic("evloop: epoll_wait: " + errno.Error())
}

// Register tells p whenever one of events (EPOLLIN, EPOLLOUT, ...) is set on fd,
// edge-triggered if EPOLLET is among them. The loop does not own fd: Unregister
// it before closing it.
func (l *Loop) Register(fd int, events uint32, p Poller) error {
	l.assertThread("Register")
	return l.poll.add(fd, events, p)
}

// Modify replaces the events of a registered fd.
func (l *Loop) Modify(fd int, events uint32) error {
	l.assertThread("Modify")
	return l.poll.modify(fd, events)
}

// Unregister forgets fd. Its Poller hears nothing more, not even of events that
// this pass had already fetched. It does so also when it returns an error, which
// tells that fd was closed too early.
func (l *Loop) Unregister(fd int) error {
	l.assertThread("Unregister")
	return l.poll.remove(fd)
}
