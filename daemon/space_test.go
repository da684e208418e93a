package daemon

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"lunar/internal/initiator"
)

// smallVolumes are thin volumes that share too little space.
const smallVolumes = `
server: {threads: 2, buffers-per-thread: 8MiB}
cache: {size: 16MiB, block-size: 64KiB, segment: %[2]s/lunar}
portal-groups: {a: {listen: ["127.0.0.1:0"]}}
volumes:
  through: {type: file, path: %[1]s/through, size: 64MiB, soft-threshold: 1MiB}
  back: {type: file, path: %[1]s/back, size: 64MiB, write: back, cache: {dirty-limit: 1MiB, flush-age: 1h}}
  sync: {type: file, path: %[1]s/sync, size: 64MiB, write: sync, cache: true}
  protected: {type: file, path: %[1]s/protected, size: 64MiB, protection: 1, protection-file: %[1]s/protected.pi}
targets: {"iqn.2026-11.test:t": {luns: {0: through, 1: back, 2: sync, 3: protected}}}
`

// TestOutOfSpace: when the file system below a thin volume is full, writes fail with
// DATA PROTECT, SPACE ALLOCATION FAILED WRITE PROTECT; what is there can be read
// and written over; with space again writes go on, and what was acknowledged is
// there to the last byte, after a restart as well.
func TestOutOfSpace(t *testing.T) {
	for lun := range uint64(4) {
		t.Run(fmt.Sprint(lun), func(t *testing.T) { testOutOfSpace(t, lun) })
	}
}

func testOutOfSpace(t *testing.T, lun uint64) {
	small, dir := t.TempDir(), t.TempDir()
	if err := unix.Mount("tmpfs", small, "tmpfs", 0, "size=4M"); err != nil {
		t.Skipf("cannot mount a small tmpfs: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(small, unix.MNT_DETACH) })
	file := filepath.Join(dir, "tgtd.yaml")
	writeFile(t, file, fmt.Sprintf(smallVolumes, small, memoryDir(t)))
	server := serve(t, "-c", file, "--state-dir", dir)
	c := dial(t, server.portal, initiator.Options{Target: "iqn.2026-11.test:t"})
	settle(t, c, lun)

	acknowledged := map[int]int{} // rounds by extent
	write := func(i, round int) bool {
		t.Helper()
		for {
			r, err := c.Command(cdb10(0x2a, lbaOf(i)), lun, pattern(i, round), 0)
			if err != nil {
				t.Fatal(err)
			}
			key, asc, ascq := r.SenseKey()
			switch [3]byte{key, asc, ascq} {
			case [3]byte{}:
				acknowledged[i] = round
				return true
			case [3]byte{0x7, 0x27, 0x07}:
				if r.Sense[0]&0x7f != 0x71 { // not a deferred error: the write itself
					return false
				}
			case [3]byte{0x6, 0x38, 0x07}: // THIN PROVISIONING SOFT THRESHOLD REACHED
			default:
				t.Fatalf("extent %d: found sense % x, expected DATA PROTECT, SPACE ALLOCATION FAILED WRITE PROTECT", i, r.Sense)
			}
		}
	}
	verify := func(c *initiator.Conn) {
		t.Helper()
		for i, round := range acknowledged {
			if got := readWhenFull(t, c, lun, lbaOf(i)); !bytes.Equal(got, pattern(i, round)) {
				t.Errorf("extent %d is not what was acknowledged", i)
			}
		}
	}

	full := 0
	for write(full, 1) {
		if full++; full == 128 {
			t.Fatal("8 MiB were written to 4 MiB")
		}
	}
	verify(c)
	if !write(0, 2) && lun != 3 { // protection information of it may need space
		t.Error("what has its space cannot be written over")
	}
	verify(c)
	const freed = 24 // of extents, more than may be dirty
	for i := range freed {
		unmap := []byte{0x42, 0, 0, 0, 0, 0, 0, 0, 24, 0}
		list := []byte{0, 22, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, byte(lbaOf(i) >> 8), byte(lbaOf(i)), 0, 0, 0, 128, 0, 0, 0, 0}
		for {
			if r, err := c.Command(unmap, lun, list, 0); err != nil {
				t.Fatal(err)
			} else if r.Status == initiator.StatusGood {
				break
			}
		}
		delete(acknowledged, i)
	}
	if !write(full, 1) {
		t.Error("found no space for a write after some was freed")
	}
	for {
		r, err := c.Command([]byte{0x35, 0, 0, 0, 0, 0, 0, 0, 0, 0}, lun, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		if key, asc, _ := r.SenseKey(); r.Status == initiator.StatusGood {
			break
		} else if key != 0x7 || asc != 0x27 || r.Sense[0]&0x7f != 0x71 {
			t.Fatalf("found sense % x, expected that all can be made stable", r.Sense)
		}
	}
	verify(c)
	logout(t, c)
	server.stop()

	again := serve(t, "-c", file, "--state-dir", dir)
	c = dial(t, again.portal, initiator.Options{Target: "iqn.2026-11.test:t"})
	settle(t, c, lun)
	verify(c)
	logout(t, c)
	if entries, err := os.ReadDir(small); err != nil || len(entries) == 0 {
		t.Errorf("found %v, %v: the volumes were elsewhere", entries, err)
	}
}

// readWhenFull reads 64 KiB. It may be told of a write back that failed meanwhile, as
// a deferred error, and comes again.
func readWhenFull(t *testing.T, c *initiator.Conn, lun uint64, lba uint32) []byte {
	t.Helper()
	for {
		r, err := c.Command(cdb10(0x28, lba), lun, nil, 64<<10)
		switch {
		case err != nil:
			t.Fatal(err)
		case r.Status == initiator.StatusGood:
			return r.In
		case r.Sense[0]&0x7f != 0x71:
			t.Fatalf("LBA %d: found status %#02x, sense % x", lba, r.Status, r.Sense)
		}
	}
}
