package backstoretest

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// LoopDevice says what a loop device is to be like.
type LoopDevice struct {
	File  string // behind it
	Size  int64  // bytes that the file gets; 0: it is there
	Block uint32 // logical block size in bytes; 0 is 512
	Flags uint32 // LO_FLAGS_READ_ONLY and others of loop(4)
}

// Attach makes the device, which lasts until the test ends, and returns its path. The
// test is skipped where there are no loop devices.
func (l LoopDevice) Attach(t testing.TB) (device string) {
	t.Helper()
	f, err := os.OpenFile(l.File, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if l.Size > 0 {
		if err := f.Truncate(l.Size); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 { // another process may take the free one first
		if device, err = l.attach(t, f); !errors.Is(err, unix.EBUSY) {
			break
		}
	}
	if err != nil {
		t.Skipf("no loop device here: %v", err)
	}
	return device
}

func (l LoopDevice) attach(t testing.TB, f *os.File) (string, error) {
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer control.Close()
	n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
	if err != nil {
		return "", err
	}
	path := fmt.Sprintf("/dev/loop%d", n)
	device, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	config := unix.LoopConfig{Fd: uint32(f.Fd()), Size: max(l.Block, 512)}
	config.Info.Flags = l.Flags
	if err := unix.IoctlLoopConfigure(int(device.Fd()), &config); err != nil {
		return "", errors.Join(err, device.Close())
	}
	t.Cleanup(func() {
		_ = unix.IoctlSetInt(int(device.Fd()), unix.LOOP_CLR_FD, 0)
		_ = device.Close()
	})
	return path, nil
}
