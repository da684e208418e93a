package main

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// tracer follows all threads of a process. Its methods belong to the thread that
// started the process, except for plant.
type tracer struct {
	pid   int
	mem   *os.File
	saved map[uint64]byte // what was where breakpoints are, or were
}

// int3 is the breakpoint instruction, of one byte.
const int3 = 0xcc

// seize takes a process that stopped before its first instruction.
func seize(pid int) (*tracer, error) {
	var status unix.WaitStatus
	if _, err := unix.Wait4(pid, &status, unix.WALL, nil); err != nil {
		return nil, err
	}
	if !status.Stopped() {
		return nil, fmt.Errorf("found wait status %#x of process %d, expected that it has stopped", status, pid)
	}
	if err := unix.PtraceSetOptions(pid, unix.PTRACE_O_TRACECLONE|unix.PTRACE_O_EXITKILL); err != nil {
		return nil, fmt.Errorf("ptrace: %w", err)
	}
	mem, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return &tracer{pid: pid, mem: mem, saved: map[uint64]byte{}}, nil
}

// save reads what breakpoints will replace.
func (t *tracer) save(addresses ...uint64) error {
	for _, a := range addresses {
		var b [1]byte
		if _, err := t.mem.ReadAt(b[:], int64(a)); err != nil {
			return err
		}
		t.saved[a] = b[0]
	}
	return nil
}

// plant puts breakpoints where save has been. Any thread may do so, and the process may run.
func (t *tracer) plant(addresses ...uint64) error {
	for _, a := range addresses {
		if err := t.put(a, int3); err != nil {
			return err
		}
	}
	return nil
}

func (t *tracer) lift(address uint64) error { return t.put(address, t.saved[address]) }

// put changes a byte of the program. A process that was killed has no memory any more.
func (t *tracer) put(address uint64, b byte) error {
	if n, err := t.mem.WriteAt([]byte{b}, int64(address)); n != 0 && err != nil {
		return err
	}
	return nil
}

// follow lets the process run until it has ended. reached is called with each
// thread that stands at a breakpoint, which has been lifted; the thread goes on
// when it returns.
func (t *tracer) follow(reached func(thread int, at uint64) error) error {
	defer t.mem.Close()
	if err := unix.PtraceCont(t.pid, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	for {
		thread, status, err := t.wait()
		switch {
		case errors.Is(err, unix.ECHILD): // step has seen the end
			return nil
		case err != nil || thread == t.pid && !status.Stopped():
			return err
		case !status.Stopped():
			continue
		}
		at, err := t.breakpoint(thread, status)
		if err == nil && at != 0 {
			err = reached(thread, at)
		}
		if err == nil {
			err = t.proceed(thread, status)
		}
		if err != nil && !errors.Is(err, unix.ESRCH) { // a thread that was killed meanwhile
			return err
		}
	}
}

// wait returns the next event of a thread of this process: children of other threads
// are left to them.
func (t *tracer) wait() (thread int, status unix.WaitStatus, err error) {
	for {
		thread, err = unix.Wait4(-1, &status, unix.WALL|unix.WNOTHREAD, nil)
		if !errors.Is(err, unix.EINTR) {
			return thread, status, err
		}
	}
}

// breakpoint returns the address of the one that a thread has run into, lifted, and 0
// if that is not why it stopped. The thread stands at the instruction again.
func (t *tracer) breakpoint(thread int, status unix.WaitStatus) (uint64, error) {
	if status.StopSignal() != unix.SIGTRAP || status.TrapCause() > 0 {
		return 0, nil
	}
	var r unix.PtraceRegs
	if err := unix.PtraceGetRegs(thread, &r); err != nil {
		return 0, err
	}
	if _, ok := t.saved[r.Rip-1]; !ok {
		return 0, nil
	}
	r.Rip--
	return r.Rip, errors.Join(unix.PtraceSetRegs(thread, &r), t.lift(r.Rip))
}

// proceed lets a thread go on after an event, with its signal if that is meant for the
// process.
func (t *tracer) proceed(thread int, status unix.WaitStatus) error {
	signal := status.StopSignal()
	if signal == unix.SIGTRAP || signal == unix.SIGSTOP {
		signal = 0
	}
	return unix.PtraceCont(thread, int(signal))
}

// step lets a thread execute one instruction, or one turn of a repeated one. Others
// go on with what they do. false: the process has ended.
func (t *tracer) step(thread int) (bool, error) {
	if err := unix.PtraceSingleStep(thread); err != nil {
		return false, err
	}
	for {
		at, status, err := t.wait()
		switch {
		case err != nil || at == t.pid && !status.Stopped():
			return false, err
		case !status.Stopped():
		case at != thread:
			if _, err := t.breakpoint(at, status); err != nil {
				return false, err
			}
			if err := t.proceed(at, status); err != nil && !errors.Is(err, unix.ESRCH) {
				return false, err
			}
		case status.StopSignal() == unix.SIGTRAP && status.TrapCause() <= 0:
			return true, nil
		default: // a signal to preempt it, which comes again, or a new thread
			if err := unix.PtraceSingleStep(thread); err != nil {
				return false, err
			}
		}
	}
}
