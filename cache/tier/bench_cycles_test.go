package tier

import (
	"encoding/binary"
	"errors"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// cycleCounter counts the cycles of the thread that made it, those in the kernel
// too.
type cycleCounter struct{ fd int }

// countCycles begins to count. Virtual machines and unprivileged processes often
// have no counter; then nothing is reported.
func countCycles(b *testing.B) cycleCounter {
	b.Helper()
	fd, err := unix.PerfEventOpen(&unix.PerfEventAttr{
		Type:   unix.PERF_TYPE_HARDWARE,
		Config: unix.PERF_COUNT_HW_CPU_CYCLES,
		Size:   uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
	}, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return cycleCounter{-1}
	}
	return cycleCounter{fd}
}

// report gives the cycles of each operation so far, once.
func (c cycleCounter) report(b *testing.B) {
	b.Helper()
	if c.fd < 0 {
		return
	}
	var count [8]byte
	n, err := unix.Read(c.fd, count[:])
	if err = errors.Join(err, unix.Close(c.fd)); err != nil || n != len(count) {
		b.Errorf("cycle counter: %d bytes, %v", n, err)
		return
	}
	b.ReportMetric(float64(binary.NativeEndian.Uint64(count[:]))/float64(b.N), "cycles/op")
}
