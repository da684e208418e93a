package load

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// sample is the state of all clocks at one moment. A process that cannot be
// asked has a negative time.
type sample struct {
	wall   int64         // ns
	idle   time.Duration // of the event thread, with nothing to do
	self   time.Duration
	server time.Duration // of all server processes together
}

func (e *engine) sample() sample {
	s := sample{wall: e.loop.Now(), idle: e.loop.Stats().Idle}
	s.self, _ = clockTime(unix.CLOCK_PROCESS_CPUTIME_ID)
	for _, pid := range e.workload.ServerPIDs {
		t, err := ProcessTime(pid)
		if err != nil {
			s.server = -1
			break
		}
		s.server += t
	}
	return s
}

// maxPID is the kernel's PID_MAX_LIMIT.
const maxPID = 1 << 22

// ProcessTime returns the CPU time that all threads of a process, ended ones
// included, have used: from its CPU clock, or in ticks from /proc.
func ProcessTime(pid int) (time.Duration, error) {
	// The clock id that clock_getcpuclockid(3) makes: ^pid, process-wide,
	// scheduler's nanoseconds.
	const scheduler = 2
	if pid < 1 || pid > maxPID {
		return 0, fmt.Errorf("process id %d, expected 1 to %d", pid, maxPID)
	}
	if t, err := clockTime(int32(^pid<<3 | scheduler)); err == nil {
		return t, nil
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("CPU time of process %d: %w", pid, err)
	}
	return parseStat(text)
}

func clockTime(clock int32) (time.Duration, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(clock, &ts); err != nil {
		return 0, fmt.Errorf("clock %d: %w", clock, err)
	}
	return time.Duration(ts.Nano()), nil
}

// tick is 1/USER_HZ, which Linux fixes for /proc.
const tick = 10 * time.Millisecond

// parseStat adds utime and stime, fields 14 and 15 of /proc/PID/stat. The
// second field, the name in parentheses, may hold anything.
func parseStat(text []byte) (time.Duration, error) {
	end := bytes.LastIndexByte(text, ')')
	fields := bytes.Fields(text[end+1:])
	if end < 0 || len(fields) < 13 {
		return 0, fmt.Errorf("process status %q has %d fields after the name, expected 13 or more", text, len(fields))
	}
	var sum time.Duration
	for _, f := range fields[11:13] {
		ticks, err := strconv.ParseUint(string(f), 10, 63)
		if err != nil {
			return 0, fmt.Errorf("process status: %w", err)
		}
		sum += time.Duration(ticks) * tick
	}
	return sum, nil
}

// preferThread gives the calling thread the real-time class, and none that it makes: what
// runs on its CPU otherwise is preempted when it wakes up, and not at its next tick or
// system call, as kernels that preempt lazily do (6.13 and later).
func preferThread() error {
	err := unix.SchedSetAttr(0, &unix.SchedAttr{Policy: unix.SCHED_RR, Priority: 1, Flags: unix.SCHED_FLAG_RESET_ON_FORK}, 0)
	if err != nil {
		return fmt.Errorf("real-time class: %w", err)
	}
	return nil
}
