package daemon

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lunar/backstore/backstoretest"
	"lunar/backstore/images"
	"lunar/conf"
	"lunar/control"
	"lunar/internal/cli"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
)

const snapshotsConfig = `
server: {threads: 2, buffers-per-thread: 8MiB}
cache: {size: 32MiB, block-size: 64KiB, segment: %[2]s/lunar}
portal-groups: {a: {listen: ["127.0.0.1:0"]}}
volumes:
  back: {type: file, path: %[1]s/back.img, size: 8MiB, write: back, cache: {flush-age: 1h}, serial: S1}
  plain: {type: file, path: %[1]s/plain.img, size: 4MiB}
  elsewhere: {type: ram, size: 4MiB}
targets: {"iqn.2026-11.test:t": {luns: {0: back, 1: plain}}, "iqn.2026-11.test:u": {luns: {0: elsewhere}}}
`

// serveSnapshots serves volumes on a file system with shared blocks.
func serveSnapshots(t *testing.T) (l *live, disks string) {
	t.Helper()
	disks = backstoretest.Reflink(t, "xfs")
	return serveLive(t, fmt.Sprintf(snapshotsConfig, disks, memoryDir(t))), disks
}

func (l *live) connect(t *testing.T, who string) *initiator.Conn {
	t.Helper()
	c := dial(t, l.portal, initiator.Options{Target: "iqn.2026-11.test:t", Initiator: "iqn.2026-11.test:" + who})
	settle(t, c, 0)
	settle(t, c, 1)
	return c
}

// TestSnapshots: a snapshot has what was acknowledged, the cache's alone included, clones are
// disks of their own, and a volume that is rolled back reads as it was, whatever the cache
// had, and tells its initiators.
func TestSnapshots(t *testing.T) {
	l, disks := serveSnapshots(t)
	c := l.connect(t, "one")
	write := func(round int) {
		for i := range 4 {
			transfer(t, c, cdb10(0x2a, uint32(i*512)), 0, pattern(i, round), 0)
		}
	}
	reads := func(c *initiator.Conn, lun uint64, round int) {
		t.Helper()
		for i := range 4 {
			if got := transfer(t, c, cdb10(0x28, uint32(i*512)), lun, nil, 64<<10); !bytes.Equal(got, pattern(i, round)) {
				t.Errorf("LUN %d, part %d: found %.40q, expected round %d", lun, i, got, round)
			}
		}
	}
	write(1)
	l.has(l.tgtd(cli.ExitOK, "volume", "snapshot", "create", "back", "plain", "--name", "one"), "Snapshot one: back, plain", "held for")
	write(2)
	dir := filepath.Join(disks, "back.img"+images.Suffix)
	image, err := os.ReadFile(filepath.Join(dir, "one"))
	if err != nil || !bytes.HasPrefix(image, pattern(0, 1)) || !bytes.HasPrefix(image[512*512:], pattern(1, 1)) {
		t.Errorf("found %v, %.40q, expected what was acknowledged", err, image)
	}
	l.has(l.tgtd(cli.ExitFailure, "volume", "snapshot", "create", "back", "--name", "one"), "a snapshot of this name already")
	l.has(l.tgtd(cli.ExitFailure, "volume", "snapshot", "create", "elsewhere"), "xfs or btrfs")
	l.has(l.tgtd(cli.ExitFailure, "volume", "snapshot", "create", "back", "--name", "auto-1"), "the schedule")
	l.has(l.tgtd(cli.ExitOK, "volume", "snapshot", "list", "back"), "one", "8MiB")

	l.has(l.tgtd(cli.ExitOK, "volume", "snapshot", "clone", "back", "one", "copy"), "Volume copy: "+disks+"/copy.img")
	l.has(l.tgtd(cli.ExitOK, "volume", "snapshot", "clone", "back", "one", "seen", "--read-only"), "volumes.seen")
	l.tgtd(cli.ExitOK, "lun", "create", "iqn.2026-11.test:t", "2", "volume=copy")
	l.tgtd(cli.ExitOK, "lun", "create", "iqn.2026-11.test:t", "3", "volume=seen")
	other := l.connect(t, "other")
	for lun := range uint64(4) {
		settle(t, other, lun)
	}
	reads(other, 0, 2)
	reads(other, 2, 1)
	reads(other, 3, 1)
	if a, b := transfer(t, other, serial, 0, nil, 96), transfer(t, other, serial, 2, nil, 96); bytes.Equal(a, b) {
		t.Errorf("found serial number %q of both", a)
	}
	transfer(t, other, cdb10(0x2a, 0), 2, pattern(0, 9), 0)
	if r, err := other.Command(cdb10(0x2a, 0), 3, pattern(0, 9), 0); err != nil || r.Status == 0 {
		t.Errorf("found %v, %v, expected that a snapshot cannot be written to", r, err)
	}
	l.has(l.tgtd(cli.ExitFailure, "volume", "snapshot", "delete", "back", "one"), "it is served as volume seen")

	l.has(l.tgtd(cli.ExitFailure, "volume", "snapshot", "rollback", "back", "one"), "found 2 sessions", "--force")
	attentions(t, c, 0) // of LUNs that are new
	reads(c, 0, 2)      // of the cache
	l.has(l.tgtd(cli.ExitOK, "volume", "snapshot", "rollback", "back", "one", "--force"), "What it held before is snapshot before-")
	l.sense(c, 0, 0x28, 0)
	l.sense(other, 0, 0x28, 0)
	reads(c, 0, 1)
	write(3)
	reads(c, 0, 3)
	l.keptBefore(t, dir, 2)
	if code := l.stop(); code != 0 {
		t.Fatalf("exit status %d\n%s", code, l.log)
	}
	l.serving = serve(t, "-c", l.file, "--state-dir", l.dir)
	again := l.connect(t, "one")
	settle(t, again, 3)
	reads(again, 0, 3)
	reads(again, 3, 1)
	if v := l.volume(t, "back"); v.Health.State != control.HealthOK {
		t.Errorf("found %+v", v.Health)
	}
}

// keptBefore fails if what a volume held before a rollback is not kept.
func (l *live) keptBefore(t *testing.T, dir string, round int) {
	t.Helper()
	kept, err := filepath.Glob(filepath.Join(dir, "before-*"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("found %v, %v", kept, err)
	}
	if image, err := os.ReadFile(kept[0]); err != nil || !bytes.HasPrefix(image, pattern(0, round)) {
		t.Errorf("found %v, %.40q, expected round %d", err, image, round)
	}
	names, err := os.ReadDir(dir)
	if err != nil || slices.ContainsFunc(names, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), ".") }) {
		t.Errorf("found %v, %v, expected nothing half-made", names, err)
	}
}

// stuck is a draft whose taking lasts until it is let go.
type stuck struct{ let chan struct{} }

func (s *stuck) Draw(context.Context, []images.Range) error         { return nil }
func (s *stuck) Take(context.Context, []images.Range, string) error { <-s.let; return nil }
func (s *stuck) Keep(time.Time) error                               { return nil }
func (s *stuck) Discard() error                                     { return nil }

// TestSnapshotDeadline: however long a file system takes, commands go on at the deadline, and
// there is no snapshot.
func TestSnapshotDeadline(t *testing.T) {
	a := serveChurned(t, `
server: {threads: 1, buffers-per-thread: 8MiB}
portal-groups: {a: {listen: ["127.0.0.1:0"]}}
volumes: {plain: {type: file, path: plain.img, size: 4MiB}}
targets: {"iqn.2026-11.test:t": {luns: {0: plain}}}
`)
	c := dial(t, a.portal, initiator.Options{Target: "iqn.2026-11.test:t"})
	settle(t, c, 0)
	s, ended := &stuck{make(chan struct{})}, make(chan error, 1)
	go func() {
		a.changing.Lock()
		defer a.changing.Unlock()
		_, err := a.take(newFreeze([]string{"plain"}, time.Second), []images.Draft{s})
		ended <- err
	}()
	eventually.Holds(t, "commands are held", func() bool { return a.frozen.of("plain") != nil })
	transfer(t, c, cdb10(0x2a, 0), 0, generation(1), 0) // returns at the deadline
	close(s.let)
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "no longer") {
		t.Errorf("found %v, expected that there is no snapshot", err)
	}
}

// TestSchedule: one snapshot in each period, one for all that went by, and never a deletion
// because of a wrong clock.
func TestSchedule(t *testing.T) {
	s := &conf.SnapshotSchedule{Every: time.Hour, Keep: 2}
	day := time.Date(2026, 11, 26, 0, 0, 0, 0, time.UTC)
	at := func(text string) time.Time {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		return day.Add(d)
	}
	auto := func(times ...string) (all []images.Image) {
		for _, text := range times {
			all = append(all, images.Image{Name: "auto-" + text, At: at(text)})
		}
		return all
	}
	for name, test := range map[string]struct {
		now    string
		all    []images.Image
		make   bool
		remove []string
		next   string
	}{
		"none yet":            {"10m", nil, true, nil, "1h"},
		"this hour has one":   {"1h59m", auto("0h", "1h1m"), false, nil, "2h"},
		"a new hour":          {"2h", auto("0h", "1h"), true, []string{"auto-0h"}, "3h"},
		"after a stop":        {"9h30m", auto("0h", "1h"), true, []string{"auto-0h"}, "10h"},
		"too many":            {"2h1m", auto("0h", "1h", "1h30m", "2h"), false, []string{"auto-0h", "auto-1h"}, "3h"},
		"by people":           {"2h1m", append([]images.Image{{Name: "mine", At: day}}, auto("2h")...), false, nil, "3h"},
		"a clock that is set": {"1h", auto("5h", "6h", "7h"), true, nil, "2h"},
	} {
		got := schedule(s, at(test.now), test.all)
		if (got.name != "") != test.make || !slices.Equal(got.remove, test.remove) || !got.next.Equal(at(test.next)) {
			t.Errorf("%s: found %+v", name, got)
		}
		if test.make && !strings.HasPrefix(got.name, scheduledPrefix) {
			t.Errorf("%s: found name %q", name, got.name)
		}
	}
}

// TestScheduledSnapshots: the schedule makes one at the start, deletes those that are too
// many, and tells when it could not.
func TestScheduledSnapshots(t *testing.T) {
	l, disks := serveSnapshots(t)
	dir := filepath.Join(disks, "plain.img"+images.Suffix)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		path := filepath.Join(dir, fmt.Sprintf("auto-%d", i))
		writeFile(t, path, "old")
		if err := os.Chtimes(path, time.Unix(int64(i), 0), time.Unix(int64(i), 0)); err != nil {
			t.Fatal(err)
		}
	}
	l.tgtd(cli.ExitOK, "volume", "set", "plain", "snapshots.every=24h", "snapshots.keep=2")
	eventually.Holds(t, "the schedule is kept", func() bool {
		s := l.volume(t, "plain").Snapshots
		return s != nil && s.Count == 2 && s.Due != nil && s.Failed == ""
	})
	all, err := l.api(t).Snapshots(t.Context(), "plain")
	if err != nil || len(all) != 2 || all[0].Name != "auto-2" || all[1].Size != 4<<20 {
		t.Errorf("found %+v, %v, expected the newest old one and a new one", all, err)
	}
	l.has(l.tgtd(cli.ExitFailure, "volume", "set", "back", "snapshots.every=1s", "snapshots.keep=2"), "1m0s")
	small := serveVolumes(t) // on a file system without shared blocks
	small.tgtd(cli.ExitOK, "volume", "set", "plain", "snapshots.every=24h", "snapshots.keep=2")
	eventually.Holds(t, "that it cannot be kept is told", func() bool {
		return strings.Contains(small.tgtd(cli.ExitOK, "status"), "the snapshot that its schedule wants was not made")
	})
}
