package rdmadev

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	const cm, uverbs = "/dev/infiniband/rdma_cm", "/dev/infiniband/uverbs0"
	two := []string{"mlx5_0", "rxe0"}
	for _, c := range []struct {
		name     string
		devices  []string
		files    map[string][]string
		faults   map[string]error
		expected string // part of the error; "" for none
	}{
		{"no device", nil, nil, nil, "no RDMA device"},
		{"no rdma_ucm", two, nil, map[string]error{cm: fs.ErrNotExist}, "modprobe rdma_ucm"},
		{"rdma_cm is not ours", two, nil, map[string]error{cm: &fs.PathError{Op: "open", Path: cm, Err: fs.ErrPermission}}, "open " + cm},
		{"no ib_uverbs", two, map[string][]string{"rxe0": {cm}}, nil, "modprobe ib_uverbs"},
		{"uverbs is not ours", two[1:], map[string][]string{"rxe0": {uverbs}}, map[string]error{uverbs: fs.ErrPermission}, "rxe0: permission denied (give"},
		{"iWARP alone", []string{"iwarp0"}, map[string][]string{"iwarp0": {cm, uverbs}}, nil, "iwarp0: it is an iWARP device"},
		{"iWARP and another", []string{"iwarp0", "rxe0"}, map[string][]string{"iwarp0": {cm, uverbs}, "rxe0": {cm, uverbs}}, nil, ""},
		{"one of two", two, map[string][]string{"rxe0": {cm, uverbs}}, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := host{
				func() []string { return c.devices },
				func(device string) []string { return c.files[device] },
				func(file string) error { return c.faults[file] },
				func(device string) bool { return device == "iwarp0" },
			}
			err := h.check()
			if c.expected == "" {
				if err != nil {
					t.Errorf("found %v, expected none", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.expected) {
				t.Errorf("found %v, expected it to contain %q", err, c.expected)
			}
		})
	}
}

func TestNode(t *testing.T) {
	class := t.TempDir()
	for device, text := range map[string]string{"mlx5_0": "1\n", "odd": "?\n"} {
		dir := filepath.Join(class, device, "device")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "numa_node"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for device, expected := range map[string]int{"mlx5_0": 1, "odd": -1, "rxe0": -1} {
		if found := nodeIn(class, device); found != expected {
			t.Errorf("%s: found node %d, expected %d", device, found, expected)
		}
	}
}

// Whatever this machine has, questions about what it has not are errors.
func TestUnknownDevices(t *testing.T) {
	if device, err := ForNetdev("nosuchdev0"); err == nil {
		t.Errorf("found RDMA device %q of a network device that does not exist", device)
	}
	if device, err := ForNetdev("lo"); err == nil && device == "" {
		t.Error("found neither a device nor an error for lo")
	}
	if counters, err := Counters("nosuchdev0"); err != nil || len(counters) != 0 {
		t.Errorf("found %v, %v", counters, err)
	}
}

func TestIWARP(t *testing.T) {
	class := t.TempDir()
	for device, kind := range map[string]string{"mlx5_0": "1: CA\n", "cxgb4_0": "4: RNIC\n"} {
		if err := os.Mkdir(filepath.Join(class, device), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(class, device, "node_type"), []byte(kind), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for device, expected := range map[string]bool{"mlx5_0": false, "cxgb4_0": true, "none": false} {
		if got := iwarpIn(class, device); got != expected {
			t.Errorf("%s: iWARP %v", device, got)
		}
	}
}
