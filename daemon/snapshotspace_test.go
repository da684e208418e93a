package daemon

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"lunar/backstore/backstoretest"
	"lunar/control"
	"lunar/internal/cli"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
)

// filling writes extents of 64 KiB that lie behind each other, and knows what was acknowledged.
type filling struct {
	*testing.T
	c      *initiator.Conn
	lun    uint64
	rounds []int // by extent
}

// write reports whether an extent was written, or there is no space for it.
func (f *filling) write(i, round int) bool {
	f.Helper()
	for {
		r, err := f.c.Command(cdb10(0x2a, uint32(i*128)), f.lun, pattern(i, round), 0)
		if err != nil {
			f.Fatal(err)
		}
		key, asc, ascq := r.SenseKey()
		switch {
		case r.Status == initiator.StatusGood:
			f.rounds[i] = round
			return true
		case key == 6 || key == 7 && r.Sense[0]&0x7f == 0x71: // a unit attention, or about an earlier write
		case [3]byte{key, asc, ascq} == [3]byte{0x7, 0x27, 0x07}:
			return false
		default:
			f.Fatalf("extent %d: found sense % x, expected DATA PROTECT, SPACE ALLOCATION FAILED WRITE PROTECT", i, r.Sense)
		}
	}
}

// all writes all extents, and returns how many found no space.
func (f *filling) all(round int) (failed int) {
	f.Helper()
	for i := range f.rounds {
		if !f.write(i, round) {
			failed++
		}
	}
	return failed
}

// verify reads what was acknowledged; of what found no space, what was there before.
func (f *filling) verify() {
	f.Helper()
	for i, round := range f.rounds {
		if got := readWhenFull(f.T, f.c, f.lun, uint32(i*128)); !bytes.Equal(got, pattern(i, round)) {
			f.Errorf("LUN %d, extent %d: found %.40q, expected round %d", f.lun, i, got, round)
		}
	}
}

// TestSnapshotsOnFullDisk: with snapshots, a volume needs space although its file has all of
// it. Without, writes fail as those of a thin volume do and change nothing, what the cache has
// acknowledged stays there, the volume says why, there are no snapshots, and deleting one lets
// all of it go on.
func TestSnapshotsOnFullDisk(t *testing.T) {
	disks := backstoretest.Reflink(t, "xfs")
	l := serveLive(t, strings.ReplaceAll(fmt.Sprintf(snapshotsConfig, disks, memoryDir(t)), "flush-age: 1h", "flush-age: 1s"))
	c := l.connect(t, "one")
	back, plain := &filling{t, c, 0, make([]int, 128)}, &filling{t, c, 1, make([]int, 64)}
	for _, f := range []*filling{back, plain} {
		if n := f.all(1); n > 0 {
			t.Fatalf("%d writes found no space", n)
		}
	}
	l.tgtd(cli.ExitOK, "volume", "snapshot", "create", "back", "plain", "--name", "one")
	backstoretest.Fill(t, disks)
	if n := plain.all(2); n == 0 {
		t.Fatal("all was written, expected that there is no space")
	}
	plain.verify()
	eventually.Holds(t, "the volume says why", func() bool {
		h := l.volume(t, "plain").Health
		return h.State == control.HealthDegraded && strings.Contains(h.Troubles[0].What, "also of the 4MiB that snapshots or clones have too")
	})
	l.has(l.tgtd(cli.ExitFailure, "volume", "snapshot", "create", "plain", "--name", "two"), "no space left on device")

	if n := back.all(2); n == len(back.rounds) {
		t.Errorf("no write found space, expected that the cache takes the first ones")
	}
	if r, err := c.Command([]byte{0x35, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 0, nil, 0); err != nil || r.Status == initiator.StatusGood {
		t.Errorf("found %+v, %v, expected that not all can be made stable", r, err)
	}
	back.verify()
	eventually.Holds(t, "the volume says that not all of it is on the disk", func() bool {
		h := l.volume(t, "back").Health
		return h.State == control.HealthFailed && strings.Contains(fmt.Sprint(h.Troubles), control.DirtyTrouble)
	})

	for _, volume := range []string{"back", "plain"} {
		l.tgtd(cli.ExitOK, "volume", "snapshot", "delete", volume, "one")
	}
	eventually.Holds(t, "all is written", func() bool {
		r, err := c.Command([]byte{0x35, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 0, nil, 0)
		return err == nil && r.Status == initiator.StatusGood
	})
	if n := plain.all(3); n > 0 {
		t.Errorf("%d writes found no space, expected that the file has its own again", n)
	}
	logout(t, c)
	l.stop()
	l.serving = serve(t, "-c", l.file, "--state-dir", l.dir)
	c = l.connect(t, "one")
	for _, f := range []*filling{back, plain} {
		f.c = c
		f.verify()
	}
	logout(t, c)
}
