package backstore_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
)

// loopDevice makes a block device of a new file of n bytes and returns both
// paths. Block is its logical block size.
func loopDevice(t *testing.T, n int64, block uint32, flags uint32) (device, file string) {
	t.Helper()
	file = filepath.Join(diskDir(t), "disk")
	return backstoretest.LoopDevice{File: file, Size: n, Block: block, Flags: flags}.Attach(t), file
}

func TestBlock(t *testing.T) {
	for name, buffered := range map[string]bool{"direct": false, "buffered": true} {
		for mode, ring := range modes {
			t.Run(name+"/"+mode, func(t *testing.T) {
				t.Parallel() // it mostly waits for the device
				backstoretest.Run(t, backstoretest.Subject{Ring: ring, Whole: true, Fixed: true, Open: func(t *testing.T) backstore.Store {
					device, _ := loopDevice(t, backstoretest.Size, 512, 0)
					return must[backstore.Store](t)(backstore.OpenBlock(backstore.BlockConfig{Path: device, Buffered: buffered}))
				}})
			})
		}
	}
}

// TestBlockTrim discards with BLKDISCARD, which only workers can.
func TestBlockTrim(t *testing.T) {
	backstoretest.Run(t, backstoretest.Subject{Ring: true, Whole: true, Fixed: true, Open: func(t *testing.T) backstore.Store {
		device, _ := loopDevice(t, backstoretest.Size, 512, 0)
		s := must[backstore.Store](t)(backstore.OpenBlock(backstore.BlockConfig{Path: device}))
		backstore.Trim(s)
		return s
	}})
}

func TestBlockInfo(t *testing.T) {
	device, _ := loopDevice(t, size, 4096, 0)
	s := must[backstore.Store](t)(backstore.OpenBlock(backstore.BlockConfig{Path: device, Sync: true}))
	defer closeStore(t, s)
	info := s.Info()
	if info.Size != size || info.BlockSize != 4096 || info.PhysicalBlock < 4096 || info.VolatileCache || info.ReadOnly {
		t.Errorf("info %+v of a writable device of %d bytes in blocks of 4096", info, size)
	}
	if !strings.Contains(info.Describe, device) {
		t.Errorf("described as %q, expected %s in it", info.Describe, device)
	}
}

func TestOpenBlockRefuses(t *testing.T) {
	large, _ := loopDevice(t, size, 4096, 0)
	odd, _ := loopDevice(t, size+512, 512, 0)
	taken, _ := loopDevice(t, size, 512, 0)
	defer closeStore(t, must[backstore.Store](t)(backstore.OpenBlock(backstore.BlockConfig{Path: taken})))
	for name, test := range map[string]struct {
		config backstore.BlockConfig
		want   string
	}{
		"in use":       {backstore.BlockConfig{Path: taken}, "in use: it is mounted"},
		"in use, read": {backstore.BlockConfig{Path: taken, ReadOnly: true}, "in use: it is mounted"},
		"small blocks": {backstore.BlockConfig{Path: large, BlockSize: 512}, "blocks of 4096 bytes, the block size is 512"},
		"buffered":     {backstore.BlockConfig{Path: large, BlockSize: 512, Buffered: true}, "blocks of 4096 bytes, the block size is 512"},
		"odd size":     {backstore.BlockConfig{Path: odd, BlockSize: 4096}, "size 1049088 is 512 bytes more"},
		"file":         {backstore.BlockConfig{Path: writeFile(t, page)}, "not a block device"},
		"missing":      {backstore.BlockConfig{Path: "/dev/does-not-exist"}, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := backstore.OpenBlock(test.config)
			if err == nil {
				closeStore(t, s)
				t.Fatal("opened")
			}
			if !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), test.config.Path) {
				t.Errorf("error %q, expected the path and %q in it", err, test.want)
			}
		})
	}
}

func TestReadOnlyBlock(t *testing.T) {
	device, _ := loopDevice(t, size, 512, unix.LO_FLAGS_READ_ONLY)
	for _, asked := range []bool{true, false} {
		s := must[backstore.Store](t)(backstore.OpenBlock(backstore.BlockConfig{Path: device, ReadOnly: asked}))
		if info := s.Info(); !info.ReadOnly || info.Discard {
			t.Errorf("info %+v, expected read-only without discard", info)
		}
		closeStore(t, s)
	}
}

// TestBlockMediumError shortens the file behind the device: the kernel then
// fails what lies beyond, as a bad disk does, and nothing else.
func TestBlockMediumError(t *testing.T) {
	for mode, ring := range modes {
		t.Run(mode, func(t *testing.T) {
			device, file := loopDevice(t, size, 512, 0)
			c := client(t, must[backstore.Store](t)(backstore.OpenBlock(backstore.BlockConfig{Path: device})), ring)
			c.Write(t, 0, backstoretest.Pattern(size, 1))
			c.Must(t, backstore.Op{Kind: backstore.Flush})
			if err := os.Truncate(file, size/2); err != nil {
				t.Fatal(err)
			}
			err := c.Do(backstore.Op{Kind: backstore.Read, Off: size - page, Data: backstoretest.Buffer(page)})
			if !errors.Is(err, unix.EIO) || !strings.Contains(err.Error(), "read at byte 1044480 of "+device) {
				t.Errorf("read of what is lost: %v, expected EIO", err)
			}
			if got := c.Read(t, 0, page); got[0] == 0 {
				t.Error("what is left is not readable")
			}
		})
	}
}

// mounted makes a small ext4 and returns its device and where it is mounted.
func mounted(t *testing.T) (device, dir string) {
	t.Helper()
	device, _ = loopDevice(t, 8<<20, 512, 0)
	if out, err := exec.Command("mkfs.ext4", "-q", "-O", "^has_journal", device).CombinedOutput(); err != nil {
		t.Skipf("cannot make a file system: %v: %s", err, out)
	}
	dir = t.TempDir()
	if err := unix.Mount(device, dir, "ext4", 0, ""); err != nil {
		t.Skipf("cannot mount ext4: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, 0) })
	return device, dir
}

func TestMountedDeviceIsRefused(t *testing.T) {
	device, _ := mounted(t)
	if _, err := backstore.OpenBlock(backstore.BlockConfig{Path: device}); !errors.Is(err, unix.EBUSY) {
		t.Errorf("open: %v, expected EBUSY", err)
	}
}

// TestFullDisk writes a sparse file that is larger than its file system until
// that is full, makes room by a discard, and goes on.
func TestFullDisk(t *testing.T) {
	for name, direct := range map[string]bool{"buffered": false, "direct": true} {
		for mode, ring := range modes {
			t.Run(name+"/"+mode, func(t *testing.T) {
				_, dir := mounted(t)
				config := backstore.FileConfig{Path: filepath.Join(dir, "v"), Size: 16 << 20, Direct: direct, BlockSize: page}
				testFull(t, openFile(t, config), ring)
			})
		}
	}
}

func testFull(t *testing.T, s backstore.Store, ring bool) {
	c := client(t, s, ring)
	const chunk = 256 << 10
	data := backstoretest.Pattern(chunk, 1)
	full, err := int64(0), error(nil)
	for ; full < s.Info().Size; full += chunk {
		if err = c.Do(backstore.Op{Kind: backstore.Write, FUA: true, Off: full, Data: data}); err != nil {
			break
		}
	}
	if !errors.Is(err, backstore.ErrNoSpace) {
		t.Fatalf("after %d bytes: %v, expected ErrNoSpace", full, err)
	}
	c.Must(t, backstore.Op{Kind: backstore.Discard, Off: chunk, Len: 2 * chunk})
	c.Must(t, backstore.Op{Kind: backstore.Write, FUA: true, Off: full, Data: data})
	c.Must(t, backstore.Op{Kind: backstore.Flush})
	for _, off := range []int64{0, 3 * chunk, full} {
		if !bytes.Equal(c.Read(t, off, chunk), data) {
			t.Errorf("the %d bytes at %d changed", chunk, off)
		}
	}
}
