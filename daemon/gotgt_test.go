package daemon

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"lunar/internal/cli"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
)

// gotgtConfig has a volume of each of gotgt's drivers.
const gotgtConfig = `
server: {buffers-per-thread: 8MiB}
cache: {size: 16MiB, block-size: 64KiB, segment: none}
portal-groups: {a: {listen: ["127.0.0.1:0"]}}
volumes:
  file: {type: gotgt, driver: file, path: disk.img}
  blank: {type: gotgt, driver: null, size: 1MiB}
targets: {"iqn.2026-11.test:t": {luns: {0: file, 1: blank}}}
`

func serveGotgt(t *testing.T) *live {
	t.Helper()
	l := &live{&controlled{t: t, dir: t.TempDir()}, gotgtConfig, nil}
	l.file = filepath.Join(l.dir, "tgtd.yaml")
	writeFile(t, l.file, l.text)
	writeFile(t, l.disk(), string(make([]byte, 1<<20)))
	l.serving = serve(t, "-c", l.file, "--state-dir", l.dir)
	return l
}

func (l *live) disk() string { return filepath.Join(l.dir, "disk.img") }

// TestGotgt: what initiators do with volumes of gotgt's drivers, and what these cannot.
func TestGotgt(t *testing.T) {
	l := serveGotgt(t)
	c := dial(t, l.portal, initiator.Options{Target: "iqn.2026-11.test:t"})
	settle(t, c, 0)
	settle(t, c, 1)
	want := pattern(1, 1)
	for lun := range uint64(2) {
		transfer(t, c, cdb10(0x2a, 8), lun, want, 0)
		transfer(t, c, []byte{0x35, 9: 0}, lun, nil, 0) // SYNCHRONIZE CACHE
	}
	if got := transfer(t, c, cdb10(0x28, 8), 0, nil, 64<<10); !bytes.Equal(got, want) {
		t.Error("driver file: what was written is not read")
	}
	if got := transfer(t, c, cdb10(0x28, 8), 1, nil, 64<<10); !bytes.Equal(got, make([]byte, 64<<10)) {
		t.Error("driver null: found something else than zeroes")
	}
	transfer(t, c, []byte{0x41, 5: 8, 8: 128, 9: 0}, 0, make([]byte, 512), 0) // WRITE SAME(10) of zeroes
	if image, err := os.ReadFile(l.disk()); err != nil || !bytes.Equal(image[8*512:136*512], make([]byte, 64<<10)) {
		t.Errorf("WRITE SAME has not written: %v", err)
	}
	for name, cdb := range map[string][]byte{
		"UNMAP":            {0x42, 8: 24, 9: 0},
		"WRITE ATOMIC(16)": {0x9c, 13: 8, 15: 0},
		"WRITE SAME UNMAP": {0x41, 1: 8, 5: 8, 8: 8, 9: 0},
	} {
		if r, err := c.Command(cdb, 0, make([]byte, 4096), 0); err != nil || r.Status == 0 {
			t.Errorf("%s: found %+v, %v, expected CHECK CONDITION", name, r, err)
		}
	}
	logout(t, c)
}

// TestGotgtChanges: what may change while the volumes are open.
func TestGotgtChanges(t *testing.T) {
	l := serveGotgt(t)
	l.has(l.tgtd(cli.ExitFailure, "rescan", "blank"), "configured size")
	if err := os.Truncate(l.disk(), 2<<20); err != nil {
		t.Fatal(err)
	}
	l.has(l.tgtd(cli.ExitOK, "rescan", "file"), "2097152 bytes, was 1048576")
	l.apply(cli.ExitOK, []string{"size: 1MiB", "size: 3MiB"}, "volumes.blank.size: 3MiB, was 1MiB")
	l.apply(cli.ExitOK, []string{"disk.img", "disk.img, cache: true"}, "volumes.file.cache: new", "volumes.file: opened anew")
	l.apply(cli.ExitOK, []string{"disk.img, cache: true", "disk.img"}, "volumes.file.cache: removed")
	l.apply(cli.ExitOK, []string{"disk.img", "disk.img, write: sync"}, `volumes.file.write: "sync", was "through"`)
	l.apply(cli.ExitOK, []string{"disk.img", "disk.img, read-only: true"}, "volumes.file.read-only: true, was false")
	l.apply(cli.ExitFailure, []string{"driver: file, path: disk.img, read-only: true, write: sync", "driver: null, size: 2MiB"}, "volumes.file.driver")
}

// TestGotgtErrors: what a driver reports becomes sense, and nothing of gotgt's own log
// reaches the server's output.
func TestGotgtErrors(t *testing.T) {
	l := serveGotgt(t)
	c := dial(t, l.portal, initiator.Options{Target: "iqn.2026-11.test:t"})
	settle(t, c, 0)
	if err := os.Truncate(l.disk(), 4096); err != nil {
		t.Fatal(err)
	}
	r, err := c.Command(cdb10(0x28, 1000), 0, nil, 64<<10)
	if err != nil {
		t.Fatal(err)
	}
	if key, _, _ := r.SenseKey(); r.Status != 2 || key != 3 {
		t.Errorf("found status %#x with sense key %#x, expected CHECK CONDITION with MEDIUM ERROR", r.Status, key)
	}
	logout(t, c)
}

// TestGotgtKilled: what was acknowledged is in the file after kill -9, a second server
// is kept out, and a start refuses a file that is missing.
func TestGotgtKilled(t *testing.T) {
	dir := t.TempDir()
	file, disk := filepath.Join(dir, "tgtd.yaml"), filepath.Join(dir, "disk.img")
	args := []string{"-c", file, "--state-dir", dir}
	writeFile(t, file, gotgtConfig)
	writeFile(t, disk, string(make([]byte, 1<<20)))
	s := serveChild(t, args...)
	c := dial(t, s.portal, initiator.Options{Target: "iqn.2026-11.test:t"})
	settle(t, c, 0)
	transfer(t, c, cdb10(0x2a, 8), 0, pattern(1, 1), 0)
	refused := func(dir, want string) {
		t.Helper()
		var log eventually.Output
		if status := run(t.Context(), []string{"serve", "-c", file, "--state-dir", dir}, cli.Console{Out: &log, Err: &log}); status == cli.ExitOK || !strings.Contains(log.String(), want) {
			t.Errorf("found exit status %d, expected %q in\n%s", status, want, &log)
		}
	}
	writeFile(t, file, strings.ReplaceAll(gotgtConfig, "disk.img", disk))
	refused(t.TempDir(), "another process holds a lock on it")
	_ = s.end(t, syscall.SIGKILL)
	again := serve(t, args...)
	c = dial(t, again.portal, initiator.Options{Target: "iqn.2026-11.test:t"})
	settle(t, c, 0)
	if got := transfer(t, c, cdb10(0x28, 8), 0, nil, 64<<10); !bytes.Equal(got, pattern(1, 1)) {
		t.Error("what was acknowledged is not there")
	}
	logout(t, c)
	if status := again.stop(); status != cli.ExitOK {
		t.Errorf("found exit status %d\n%s", status, again.log)
	}
	if err := os.Rename(disk, disk+".away"); err != nil {
		t.Fatal(err)
	}
	refused(dir, "disk.img")
}
