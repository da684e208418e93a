package backstore_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/internal/eventually"
)

// memoryAt returns what the mapping that b lies in takes of memory, and of that in huge
// pages, in KiB.
func memoryAt(t *testing.T, b []byte) (resident, huge int) {
	t.Helper()
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	inside := false
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var from, to uintptr
		line := lines.Text()
		if n, _ := fmt.Sscanf(line, "%x-%x ", &from, &to); n == 2 && !strings.HasSuffix(strings.Fields(line)[0], ":") {
			at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
			inside = from <= at && at < to
		}
		if inside {
			_, _ = fmt.Sscanf(line, "Rss: %d kB", &resident)
			_, _ = fmt.Sscanf(line, "AnonHugePages: %d kB", &huge)
		}
	}
	return resident, huge
}

// hugePages reports whether the kernel makes huge pages on request.
func hugePages() bool {
	const size = 4 << 20
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return false
	}
	defer unix.Munmap(b)
	first := -uintptr(unsafe.Pointer(unsafe.SliceData(b))) & (size/2 - 1)
	b[first] = 1
	return unix.Madvise(b[first:][:size/2], unix.MADV_COLLAPSE) == nil
}

// TestRAMInHugePages: what is written from end to end is in huge pages, with the data that
// it had; a store that is written here and there takes no more than what was written.
func TestRAMInHugePages(t *testing.T) {
	const size, page, huge = 16 << 20, 4 << 10, 2 << 20
	store := must[backstore.Store](t)(backstore.NewRAM(size, 0))
	defer store.Close()
	l := newRAMLender(t, store)
	for off := int64(0); off < size; off += 4 * page {
		l.Write(t, off, backstoretest.Pattern(page, 1))
	}
	ref := l.lend(0, page)
	if resident, huge := memoryAt(t, ref.Bytes()); resident != size/4>>10 || huge != 0 {
		t.Errorf("%d KiB are there, %d of them in huge pages: expected %d", resident, huge, size/4>>10)
	}
	want := backstoretest.Pattern(size, 2)
	l.release(ref)
	for off := 0; off < size; off += huge / 4 {
		l.Write(t, int64(off), want[off:][:huge/4])
	}
	ref = l.lend(0, page)
	defer l.release(ref)
	if !hugePages() {
		t.Skip("the kernel makes no huge pages on request")
	}
	eventually.Holds(t, "huge pages", func() bool {
		_, n := memoryAt(t, ref.Bytes())
		return n > 0
	})
	if !bytes.Equal(l.Read(t, 0, size), want) {
		t.Error("other data")
	}
}
