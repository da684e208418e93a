package arena

import (
	"bytes"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestMapFile: a file is mapped where it can have huge pages, what is in it stays
// when it gets them, and nothing of the address space is left behind.
func TestMapFile(t *testing.T) {
	f, err := os.CreateTemp("/dev/shm", "lunar-arena-")
	if err != nil {
		t.Skipf("no /dev/shm: %v", err)
	}
	defer f.Close()
	defer os.Remove(f.Name())
	const size = 5<<20 + 4096
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	mem, err := MapFile(int(f.Fd()), size, unix.PROT_READ|unix.PROT_WRITE)
	if err != nil {
		t.Fatal(err)
	}
	if at := uintptr(unsafe.Pointer(unsafe.SliceData(mem))); at%hugeSize != 0 || len(mem) != size {
		t.Errorf("%d bytes at %#x, expected %d at a multiple of %d", len(mem), at, size, hugeSize)
	}
	for i := range mem {
		mem[i] = byte(i % 251)
	}
	pages := Collapse(mem, 2, time.Minute)
	t.Logf("%s pages, %d KiB of them huge", pages, hugeKiB(t, mem))
	want := make([]byte, size)
	for i := range want {
		want[i] = byte(i % 251)
	}
	if !bytes.Equal(mem, want) {
		t.Error("the memory has other contents after it got huge pages")
	}
	if onFile, err := os.ReadFile(f.Name()); err != nil || !bytes.Equal(onFile, want) {
		t.Errorf("the file has other contents after its memory got huge pages, error %v", err)
	}
	if err := Unmap(mem); err != nil {
		t.Error(err)
	}
	if maps, err := os.ReadFile("/proc/self/maps"); err != nil || bytes.Contains(maps, []byte(f.Name())) {
		t.Errorf("the file is still mapped, error %v", err)
	}
}

var pmdMapped = regexp.MustCompile(`ShmemPmdMapped: +(\d+) kB`)

// hugeKiB is how much of the mapping that begins where mem does has huge pages.
func hugeKiB(t *testing.T, mem []byte) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := bytes.Cut(text, []byte("\n"+strconv.FormatUint(uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem)))), 16)+"-"))
	found := pmdMapped.FindSubmatch(after)
	if found == nil {
		return 0
	}
	n, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
