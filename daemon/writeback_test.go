package daemon

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"lunar/daemon/state"
	"lunar/internal/cli"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
)

// writeBack is a server with a volume that writes back only when it must: when
// it is stopped, flushed, or short of room.
type writeBack struct {
	dir, memory, config string
	flags               []string // of serve
}

const writeBackTarget = "iqn.2026-11.example.lunar:back"

func newWriteBack(t *testing.T) *writeBack {
	t.Helper()
	w := &writeBack{dir: t.TempDir(), memory: memoryDir(t)}
	w.config = filepath.Join(w.dir, "tgtd.yaml")
	w.configure(t, backVolume)
	return w
}

// configure writes the configuration with this volume.
func (w *writeBack) configure(t *testing.T, volume string) {
	t.Helper()
	writeFile(t, w.config, fmt.Sprintf(`
server: {threads: 2, nodes: 2, buffers-per-thread: 8MiB}
cache: {size: 16MiB, block-size: 64KiB, dirty-limit: 12MiB, segment: %s/lunar}
portal-groups: {a: {listen: ["127.0.0.1:0"]}}
volumes: {back: %s}
targets: {"%s": {luns: {0: back}}}
`, w.memory, volume, writeBackTarget))
}

func (w *writeBack) args() []string {
	return append([]string{"-c", w.config, "--state-dir", w.dir}, w.flags...)
}

func (w *writeBack) dial(t *testing.T, portal string) *initiator.Conn {
	t.Helper()
	c := dial(t, portal, initiator.Options{Target: writeBackTarget})
	settle(t, c, 0)
	return c
}

// image is what the volume's file holds.
func (w *writeBack) image(t *testing.T) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(w.dir, "back.img"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// logout ends a session, for which a server that stops waits.
func logout(t *testing.T, c *initiator.Conn) {
	t.Helper()
	if _, err := c.Logout(0); err != nil {
		t.Error(err)
	}
}

// extents is what the tests write: an LBA each, of 64 KiB.
const extents = 24

func lbaOf(i int) uint32 { return uint32(i) * 1000 }

// pattern is 64 KiB that tell extent and round.
func pattern(i, round int) []byte {
	line := fmt.Sprintf("extent %d of round %d, ", i, round)
	return bytes.Repeat([]byte(line), 64<<10/len(line)+1)[:64<<10]
}

func writeAll(t *testing.T, c *initiator.Conn, round int) {
	t.Helper()
	for i := range extents {
		transfer(t, c, cdb10(0x2a, lbaOf(i)), 0, pattern(i, round), 0)
	}
}

func readAll(t *testing.T, c *initiator.Conn, round int) {
	t.Helper()
	for i := range extents {
		if got := transfer(t, c, cdb10(0x28, lbaOf(i)), 0, nil, 64<<10); !bytes.Equal(got, pattern(i, round)) {
			t.Fatalf("extent %d does not hold what was written in round %d", i, round)
		}
	}
}

// inFile counts the extents that the file has.
func (w *writeBack) inFile(t *testing.T, round int) (n int) {
	t.Helper()
	data := w.image(t)
	for i := range extents {
		if at := int(lbaOf(i)) * 512; bytes.Equal(data[at:at+64<<10], pattern(i, round)) {
			n++
		}
	}
	return n
}

// TestWriteBackStops: SIGTERM leaves everything in the file, and nothing that
// the state directory would have to remember.
func TestWriteBackStops(t *testing.T) {
	w := newWriteBack(t)
	for round := range 2 {
		s := serveChild(t, w.args()...)
		c := w.dial(t, s.portal)
		if round > 0 {
			readAll(t, c, round-1)
		}
		writeAll(t, c, round)
		if n := w.inFile(t, round); n > 0 {
			t.Errorf("%d extents are in the file although nothing had to be written: the test proves nothing", n)
		}
		logout(t, c)
		if err := s.end(t, syscall.SIGTERM); err != nil {
			t.Fatalf("found %v, expected exit status 0\n%s", err, s.log)
		}
		if n := w.inFile(t, round); n != extents {
			t.Errorf("found %d of %d extents in the file after SIGTERM", n, extents)
		}
		if note, err := state.ReadSegmentNote(w.dir); err != nil || note.Path != "" {
			t.Errorf("found note %+v, %v after a stop in order, expected none", note, err)
		}
	}
}

// TestWriteBackKilled: what was acknowledged outlives kill -9, in the segment
// until a server takes it over.
func TestWriteBackKilled(t *testing.T) {
	w := newWriteBack(t)
	for round := range 3 {
		s := serveChild(t, w.args()...)
		c := w.dial(t, s.portal)
		if round > 0 {
			if !strings.Contains(s.log.String(), "cache segment attached") || !strings.Contains(s.log.String(), "outcome=crashed") {
				t.Errorf("found no word of the segment in\n%s", s.log)
			}
			readAll(t, c, round-1)
		}
		writeAll(t, c, round)
		if err := s.end(t, syscall.SIGKILL); err == nil {
			t.Error("the process ended by itself")
		}
		if n := w.inFile(t, round); n > 0 {
			t.Errorf("%d extents are in the file although nothing had to be written: the test proves nothing", n)
		}
	}
	s := serve(t, w.args()...)
	if status := s.stop(); status != cli.ExitOK {
		t.Fatalf("found exit status %d\n%s", status, s.log)
	}
	if n := w.inFile(t, 2); n != extents {
		t.Errorf("found %d of %d extents in the file after an orderly stop", n, extents)
	}
}

// TestWriteBackFlushes: SYNCHRONIZE CACHE reaches the file.
func TestWriteBackFlushes(t *testing.T) {
	w := newWriteBack(t)
	s := serve(t, w.args()...)
	c := w.dial(t, s.portal)
	writeAll(t, c, 0)
	synchronize := make([]byte, 10)
	synchronize[0] = 0x35
	transfer(t, c, synchronize, 0, nil, 0)
	if n := w.inFile(t, 0); n != extents {
		t.Errorf("found %d of %d extents in the file after SYNCHRONIZE CACHE", n, extents)
	}
	logout(t, c)
}

// TestWriteBackLeftover: dirty data that a crash left behind is neither
// forgotten nor mixed up when the configuration changes before the next start.
func TestWriteBackLeftover(t *testing.T) {
	for name, test := range map[string]struct {
		volume string
		want   string // of the refusal; empty: the data is written
	}{
		"through":   {"{type: file, path: back.img, size: 16MiB, cache: true}", ""},
		"sync":      {"{type: file, path: back.img, size: 16MiB, write: sync, cache: true}", ""},
		"no cache":  {"{type: file, path: back.img, size: 16MiB}", `when it was volume "back"`},
		"link":      {"{type: file, path: link.img, write: back, cache: true}", `when it was volume "back"`},
		"serial":    {"{type: file, path: back.img, size: 16MiB, write: back, cache: true, serial: other}", "name, serial, cache and segment"},
		"missing":   {"{type: file, path: absent.img, write: back, cache: true}", "is missing"},
		"larger":    {"{type: file, path: back.img, size: 64MiB, write: back, cache: true}", ""},
		"smaller":   {"{type: file, path: back.img, size: 1MiB, write: back, cache: true}", "back"},
		"read-only": {"{type: file, path: back.img, read-only: true, cache: true}", "back"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWriteBack(t)
			s := serveChild(t, w.args()...)
			writeAll(t, w.dial(t, s.portal), 0)
			s.end(t, syscall.SIGKILL)
			before := w.image(t)
			if err := os.Symlink("back.img", filepath.Join(w.dir, "link.img")); err != nil {
				t.Fatal(err)
			}

			w.configure(t, test.volume)
			w.flags = []string{"--yes", "--allow-shrink", "back"}
			if test.want != "" {
				expectRefusal(t, w, test.want)
				if !bytes.Equal(w.image(t), before) {
					t.Error("the file has changed")
				}
				w.configure(t, "{type: file, path: back.img, size: 16MiB, write: back, cache: true}")
			}
			again := serve(t, w.args()...)
			c := w.dial(t, again.portal)
			readAll(t, c, 0)
			logout(t, c)
			if status := again.stop(); status != cli.ExitOK || w.inFile(t, 0) != extents {
				t.Errorf("found exit status %d and %d of %d extents in the file\n%s", status, w.inFile(t, 0), extents, again.log)
			}
		})
	}
}

// TestWriteBackOrphan: data of a volume that is not configured any more waits
// until it is again, through orderly stops of a server that serves others.
func TestWriteBackOrphan(t *testing.T) {
	w := newWriteBack(t)
	s := serveChild(t, w.args()...)
	writeAll(t, w.dial(t, s.portal), 0)
	s.end(t, syscall.SIGKILL)
	w.configure(t, "{type: file, path: other.img, size: 16MiB, write: back, cache: true}")
	w.flags = []string{"--yes"}
	expectRefusal(t, w, "lunar forget back") // of this name it would be taken for it
	text, err := os.ReadFile(w.config)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, w.config, strings.NewReplacer("volumes: {back:", "volumes: {other:", "0: back", "0: other").Replace(string(text)))
	for range 2 {
		other := serve(t, w.args()...)
		c := w.dial(t, other.portal)
		writeAll(t, c, 1)
		logout(t, c)
		if status := other.stop(); status != cli.ExitOK || !strings.Contains(other.log.String(), "data of a volume that is not configured") {
			t.Errorf("found exit status %d\n%s", status, other.log)
		}
		if note, err := state.ReadSegmentNote(w.dir); err != nil || len(note.Volumes) != 1 || w.inFile(t, 0) != 0 {
			t.Errorf("found note %+v, %v and %d extents in the file, expected those of the orphan to wait", note, err, w.inFile(t, 0))
		}
	}
	w.configure(t, "{type: file, path: back.img, size: 16MiB}")
	expectRefusal(t, w, `unwritten data for `)
	w.configure(t, "{type: file, path: back.img, size: 16MiB, write: back, cache: true}")
	again := serve(t, w.args()...)
	c := w.dial(t, again.portal)
	readAll(t, c, 0)
	logout(t, c)
	if status := again.stop(); status != cli.ExitOK || w.inFile(t, 0) != extents {
		t.Errorf("found exit status %d and %d of %d extents in the file\n%s", status, w.inFile(t, 0), extents, again.log)
	}
	if note, err := state.ReadSegmentNote(w.dir); err != nil || len(note.Volumes) != 0 {
		t.Errorf("found note %+v, %v, expected none", note, err)
	}
}

// expectRefusal runs tgtd serve, which must say why it does not start.
func expectRefusal(t *testing.T, w *writeBack, wants ...string) {
	t.Helper()
	var out, log eventually.Output
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience) // a server that starts would serve forever
	defer cancel()
	check := asTheyWere(t, w.dir, w.memory)
	status := run(ctx, append([]string{"serve"}, w.args()...), cli.Console{Out: &out, Err: &log})
	for _, want := range wants {
		if status != cli.ExitFailure || !strings.Contains(log.String(), want) {
			t.Fatalf("found exit status %d, expected a refusal with %q\n%s", status, want, &log)
		}
	}
	check()
	if note, err := state.ReadSegmentNote(w.dir); err != nil || len(note.Volumes) != 1 {
		t.Fatalf("found note %+v, %v after a refusal, expected that of the crash", note, err)
	}
}
