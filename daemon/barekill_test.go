package daemon

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lunar/backstore/backstoretest"
	"lunar/internal/cli"
	"lunar/internal/eventually"
)

// killsVariable is how often TestBareKill kills, of each kind of store.
const killsVariable = "TGTD_TEST_KILLS"

// TestBareKill: a server that is killed while it writes to its store is started again
// without being asked, as often as one likes, and has everything that it acknowledged.
func TestBareKill(t *testing.T) {
	kills := 4
	if text := os.Getenv(killsVariable); text != "" {
		var err error
		if kills, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	for name, volume := range map[string]func(*testing.T) string{
		"file": func(*testing.T) string {
			return "{type: file, path: back.img, size: 32MiB, write: back, cache: {flush-age: 100ms, dirty-limit: 1MiB}}"
		},
		"buffered file": func(*testing.T) string {
			return "{type: file, path: back.img, size: 32MiB, direct: false, write: back, cache: {flush-age: 100ms, dirty-limit: 1MiB}}"
		},
		"gotgt": func(t *testing.T) string {
			path := filepath.Join(t.TempDir(), "disk")
			if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 32<<20)); err != nil {
				t.Fatal(err)
			}
			return "{type: gotgt, driver: file, path: " + path + ", write: back, cache: {flush-age: 100ms, dirty-limit: 1MiB}}"
		},
		"device": func(t *testing.T) string {
			return "{type: block, path: " + loopDevice(t, 32<<20) + ", write: back, cache: {flush-age: 100ms, dirty-limit: 1MiB}}"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWriteBack(t)
			w.configure(t, volume(t))
			for round := range kills {
				s := serveChild(t, w.args()...)
				c := w.dial(t, s.portal)
				if round > 0 {
					readBoth(t, func(i int) []byte { return transfer(t, c, cdb10(0x28, lbaOf(i)), 0, nil, 64<<10) }, round-1)
				}
				writeAll(t, c, 2*round)
				killed := make(chan struct{})
				go func() { // the kill comes into the midst of more of the same
					defer close(killed)
					for range 8 {
						for i := range extents {
							if _, err := c.Command(cdb10(0x2a, lbaOf(i)), 0, pattern(i, 2*round+1), 0); err != nil {
								return
							}
						}
					}
				}()
				time.Sleep(time.Duration(round%17) * time.Millisecond) // any moment will do
				_ = s.end(t, syscall.SIGKILL)
				<-killed
			}
			s := serve(t, w.args()...)
			if status := s.stop(); status != cli.ExitOK {
				t.Errorf("found exit status %d\n%s", status, s.log)
			}
		})
	}
}

// readBoth expects what was written before a kill, or what was being written over it:
// each logical block of one of them.
func readBoth(t *testing.T, read func(i int) []byte, round int) {
	t.Helper()
	for i := range extents {
		got, old, fresh := read(i), pattern(i, 2*round), pattern(i, 2*round+1)
		for at := 0; at < len(got); at += 512 {
			if b := got[at : at+512]; !bytes.Equal(b, old[at:at+512]) && !bytes.Equal(b, fresh[at:at+512]) {
				t.Fatalf("extent %d, byte %d: found %q of neither write of round %d", i, at, b[:32], round)
			}
		}
	}
}

// loopDevice makes a block device of a new file.
func loopDevice(t *testing.T, size int64) (device string) {
	t.Helper()
	return backstoretest.LoopDevice{File: filepath.Join(t.TempDir(), "disk"), Size: size}.Attach(t)
}

// TestChangedDevice: what somebody else has written to a block device is told by the
// kernel's counters.
func TestChangedDevice(t *testing.T) {
	w := newWriteBack(t)
	device := loopDevice(t, 32<<20)
	w.configure(t, "{type: block, path: "+device+", write: back, cache: {flush-age: 1h}}")
	s := serveChild(t, w.args()...)
	writeAll(t, w.dial(t, s.portal), 0)
	_ = s.end(t, syscall.SIGKILL)
	f, err := os.OpenFile(device, os.O_RDWR|unix.O_SYNC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(make([]byte, 4096), 31<<20); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	expectRefusal(t, w, "somebody else has written to the store")
	var out, log eventually.Output
	if status := run(t.Context(), append([]string{"adopt", "back"}, w.args()...), cli.Console{Out: &out, Err: &log}); status != cli.ExitOK {
		t.Fatalf("found exit status %d\n%s", status, &log)
	}
	again := serve(t, w.args()...)
	c := w.dial(t, again.portal)
	readAll(t, c, 0)
	logout(t, c)
	if status := again.stop(); status != cli.ExitOK || strings.Contains(again.log.String(), "level=ERROR") {
		t.Errorf("found exit status %d\n%s", status, again.log)
	}
}
