package arena

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func TestMappedMemoryIsZeroed(t *testing.T) {
	for _, node := range []int{-1, 0} {
		mem, err := Map(3*4096, node)
		if err != nil {
			t.Fatal(err)
		}
		for i := range mem {
			if mem[i] != 0 {
				t.Fatalf("node %d: byte %d is %d", node, i, mem[i])
			}
			mem[i] = 1
		}
		if err := unix.Munmap(mem); err != nil {
			t.Error(err)
		}
	}
	if _, err := Map(4096, maxNodes); err == nil {
		t.Error("memory of a node that cannot be was mapped")
	}
}

// TestUndumped: all ways to memory for data lead to memory that core dumps do not have.
func TestUndumped(t *testing.T) {
	file, err := os.CreateTemp("/dev/shm", "lunar-arena")
	if err != nil {
		t.Skipf("no shared memory: %v", err)
	}
	defer os.Remove(file.Name())
	defer file.Close()
	if err := file.Truncate(8192); err != nil {
		t.Fatal(err)
	}
	for name, make := range map[string]func() ([]byte, error){
		"Map":     func() ([]byte, error) { return Map(8192, -1) },
		"MapFile": func() ([]byte, error) { return MapFile(int(file.Fd()), 8192, unix.PROT_READ|unix.PROT_WRITE) },
		"Open": func() ([]byte, error) {
			a, err := Open(Options{Bytes: 8192, Node: -1, Threads: 1})
			if err != nil {
				return nil, err
			}
			return a.Bytes(), nil
		},
	} {
		mem, err := make()
		if err != nil {
			t.Fatal(err)
		}
		mem[0] = 1
		smaps, err := os.ReadFile("/proc/self/smaps")
		if err != nil {
			t.Skipf("no smaps: %v", err)
		}
		if flags := flagsAt(string(smaps), uintptr(unsafe.Pointer(&mem[0]))); !strings.Contains(flags, " dd") {
			t.Errorf("%s: found flags %q, expected dd among them", name, flags)
		}
	}
}

// flagsAt are the flags of the mapping that has an address (proc(5), VmFlags).
func flagsAt(smaps string, at uintptr) string {
	inside := false
	for line := range strings.Lines(smaps) {
		var from, to uintptr
		if n, _ := fmt.Sscanf(line, "%x-%x ", &from, &to); n == 2 {
			inside = at >= from && at < to
		}
		if flags, ok := strings.CutPrefix(line, "VmFlags:"); ok && inside {
			return flags
		}
	}
	return ""
}
