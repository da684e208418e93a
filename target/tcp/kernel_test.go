package tcp

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf"

	"lunar/target/tcp/kernelqtcp"
)

// TestKernelTakesItsOwnMapAlone: whatever else is pinned where the map of shares belongs is
// refused: of a map with longer values the kernel would read what lies behind a share. It needs
// root and the file system of BPF.
func TestKernelTakesItsOwnMapAlone(t *testing.T) {
	dir := fmt.Sprintf("/sys/fs/bpf/lunar-test-%d", os.Getpid())
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Skip("the file system of BPF cannot be used: ", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	pin := func(name string, spec *ebpf.MapSpec) string {
		m, err := ebpf.NewMap(spec)
		if err != nil {
			t.Skip("a map cannot be made: ", err)
		}
		defer m.Close()
		path := filepath.Join(dir, name)
		if err := m.Pin(path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		pin("hash", &ebpf.MapSpec{Type: ebpf.Hash, KeySize: 4, ValueSize: 16, MaxEntries: 1}):    "expected the map that tgtd qtcp load pins",
		pin("long", &ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 4096, MaxEntries: 1}): "expected the map that tgtd qtcp load pins",
		filepath.Join(dir, "missing"): "tgtd qtcp load",
		dir:                           "permission denied",
		file:                          "permission denied",
	} {
		var k kernel
		if fd, err := k.open(path); err == nil || !strings.Contains(err.Error(), want) || k.shares != 0 {
			t.Errorf("%s: opened as %d, %v, expected an error with %q", path, fd, err, want)
		}
	}
	if kernelqtcp.SharesMap != (kernelqtcp.Map{Type: 24, Key: 4, Value: 32}) {
		t.Errorf("found %+v, expected that of bpf/qtcp.bpf.c", kernelqtcp.SharesMap)
	}
}
