package backstore_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
)

// TestResizeBlock: a device has the size that it has.
func TestResizeBlock(t *testing.T) {
	device, file := loopDevice(t, size, 512, 0)
	s := must[backstore.Store](t)(backstore.OpenBlock(backstore.BlockConfig{Path: device}))
	defer s.Close()
	c := backstoretest.NewClient(t, s, backstoretest.NewLoop(t, false))
	if err := os.Truncate(file, 2*size); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.IoctlSetInt(int(f.Fd()), unix.LOOP_SET_CAPACITY, 0); err != nil {
		t.Fatal(err)
	}
	if err := backstore.Resize(s, 3*size); err == nil || s.Info().Size != size {
		t.Fatalf("resize to another size than the device's: %v, size %d", err, s.Info().Size)
	}
	if err := backstore.Resize(s, 2*size); err != nil || s.Info().Size != 2*size {
		t.Fatalf("resize to the device's size: %v, size %d", err, s.Info().Size)
	}
	c.Write(t, 2*size-4096, backstoretest.Pattern(4096, 1))
}

// TestResizeFile: the file is as long as the volume, or nothing has changed.
func TestResizeFile(t *testing.T) {
	path := filepath.Join(diskDir(t), "v")
	s := openFile(t, backstore.FileConfig{Path: path, BlockSize: 4096})
	for _, want := range []int64{2 * size, size / 2, size} {
		if err := backstore.Resize(s, want); err != nil {
			t.Fatal(err)
		}
		expectLength(t, path, want)
	}
	for _, wrong := range []int64{0, size + 512, 1 << 62} {
		if err := backstore.Resize(s, wrong); err == nil || s.Info().Size != size {
			t.Errorf("resize to %d: %v, size %d", wrong, err, s.Info().Size)
		}
		expectLength(t, path, size)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s = must[backstore.Store](t)(backstore.OpenFile(backstore.FileConfig{Path: path, ReadOnly: true}))
	defer s.Close()
	if err := backstore.Resize(s, 2*size); !errors.Is(err, backstore.ErrReadOnly) {
		t.Errorf("resize of a read-only file: %v", err)
	}
}

func expectLength(t *testing.T, path string, want int64) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() != want {
		t.Errorf("the file has %d bytes, expected %d", info.Size(), want)
	}
}
