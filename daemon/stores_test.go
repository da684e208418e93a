package daemon

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lunar/daemon/state"
	"lunar/internal/cli"
	"lunar/internal/eventually"
)

// storeSite is a server with one volume on a file, in a directory that can be moved
// away as a file system that is not mounted.
type storeSite struct {
	dir, config, mount string
}

func newStoreSite(t *testing.T, volume string) *storeSite {
	t.Helper()
	s := &storeSite{dir: t.TempDir()}
	s.config, s.mount = filepath.Join(s.dir, "tgtd.yaml"), filepath.Join(s.dir, "mount")
	if err := os.Mkdir(s.mount, 0o700); err != nil {
		t.Fatal(err)
	}
	s.configure(t, volume)
	return s
}

func (s *storeSite) configure(t *testing.T, volume string) {
	t.Helper()
	writeFile(t, s.config, `
portal-groups: {a: {listen: ["127.0.0.1:0"]}}
volumes: {v: `+volume+`}
targets: {"iqn.2026-11.example.lunar:v": {luns: {0: v}}}
`)
}

func (s *storeSite) args() []string { return []string{"-c", s.config, "--state-dir", s.dir} }

// visit starts the server and stops it in order.
func (s *storeSite) visit(t *testing.T) *serving {
	t.Helper()
	running := serve(t, s.args()...)
	if status := running.stop(); status != cli.ExitOK {
		t.Fatalf("found exit status %d\n%s", status, running.log)
	}
	return running
}

// refused starts the server, which must say why it does not.
func (s *storeSite) refused(t *testing.T, want string) {
	t.Helper()
	var out, log eventually.Output
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience) // a server that starts would serve forever
	defer cancel()
	check := asTheyWere(t, s.dir)
	defer check()
	status := run(ctx, append([]string{"serve"}, s.args()...), cli.Console{Out: &out, Err: &log})
	if status != cli.ExitFailure || !strings.Contains(log.String(), want) {
		t.Fatalf("found exit status %d, expected a refusal with %q\n%s", status, want, &log)
	}
}

// say runs lunar adopt or forget.
func (s *storeSite) say(t *testing.T, what string) {
	t.Helper()
	var out, log eventually.Output
	if status := run(context.Background(), append([]string{what, "v"}, s.args()...), cli.Console{Out: &out, Err: &log}); status != cli.ExitOK {
		t.Fatalf("found exit status %d\n%s", status, &log)
	}
}

func sizeOf(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// TestStoreGoneOrCut: a file that is missing, or shorter than it was, is not made
// whole with zeroes, until an administrator says so; a larger size grows it.
func TestStoreGoneOrCut(t *testing.T) {
	s := newStoreSite(t, "{type: file, path: mount/v, size: 1MiB}")
	file := filepath.Join(s.mount, "v")
	s.visit(t)
	s.configure(t, "{type: file, path: mount/v, size: 2MiB}")
	s.visit(t)
	if n := sizeOf(t, file); n != 2<<20 {
		t.Fatalf("found %d bytes, expected the new size", n)
	}

	away := s.mount + ".away" // as when it is not mounted
	if err := os.Rename(s.mount, away); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(s.mount, 0o700); err != nil {
		t.Fatal(err)
	}
	s.refused(t, "is its file system mounted?")
	if _, err := os.Stat(file); err == nil {
		t.Error("an empty disk was made")
	}
	writeFile(t, file, "")
	s.refused(t, "is not the store that the volume had")
	if n := sizeOf(t, file); n != 0 {
		t.Errorf("another file was grown to %d bytes", n)
	}
	if err := os.RemoveAll(s.mount); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(away, s.mount); err != nil {
		t.Fatal(err)
	}
	s.visit(t)

	if err := os.Truncate(file, 1<<20); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s.refused(t, "has 1048576 bytes, the volume had 2097152")
	}
	s.say(t, "adopt")
	if err := os.Truncate(file, 1<<19); err != nil { // it holds for what was there
		t.Fatal(err)
	}
	s.refused(t, "has 524288 bytes")
	s.say(t, "adopt")
	s.visit(t)
	s.visit(t)

	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	s.refused(t, "lunar forget v")
	s.say(t, "forget")
	s.visit(t)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	s.refused(t, "missing") // an intention holds once
}

// TestIntentionWhileServed: what is served needs none.
func TestIntentionWhileServed(t *testing.T) {
	s := newStoreSite(t, "{type: file, path: mount/v, size: 1MiB}")
	running := serve(t, s.args()...)
	var out, log eventually.Output
	if status := run(t.Context(), append([]string{"forget", "v"}, s.args()...), cli.Console{Out: &out, Err: &log}); status != cli.ExitFailure || !strings.Contains(log.String(), "is being served") {
		t.Errorf("found exit status %d\n%s", status, &log)
	}
	running.stop()
}

// TestResizeIsRecorded: the record follows the size, so that a volume that was made
// smaller is not taken for one that was cut.
func TestResizeIsRecorded(t *testing.T) {
	s := newStoreSite(t, "{type: file, path: mount/v, size: 2MiB}")
	running := serve(t, s.args()...)
	for size, text := range map[int64]string{1 << 20: "1MiB", 3 << 20: "3MiB"} {
		s.configure(t, "{type: file, path: mount/v, size: "+text+"}")
		var out, log eventually.Output
		if status := run(t.Context(), []string{"apply", "--allow-shrink", "v", s.config, "--state-dir", s.dir}, cli.Console{Out: &out, Err: &log}); status != cli.ExitOK {
			t.Fatalf("found exit status %d\n%s", status, &log)
		}
		if r, err := state.RecordOf(s.dir, "v").Load(); err != nil || r.Size != size {
			t.Errorf("found %+v, %v, expected %d bytes", r, err, size)
		}
	}
	running.stop()
}

// TestNewStateDir: segments of others are mentioned to who begins with a new state
// directory.
func TestNewStateDir(t *testing.T) {
	w := newWriteBack(t)
	first := serve(t, w.args()...)
	first.stop()
	if strings.Contains(first.log.String(), "the state directory is new") {
		t.Errorf("there was no segment\n%s", first.log)
	}
	other := t.TempDir()
	again := serve(t, "-c", w.config, "--state-dir", other)
	again.stop()
	if !strings.Contains(again.log.String(), "the state directory is new") {
		t.Errorf("found no word of the segment that is there\n%s", again.log)
	}
	third := serve(t, "-c", w.config, "--state-dir", t.TempDir())
	third.stop()
	if text := third.log.String(); strings.Count(text, "the state directory is new") != 1 || !strings.Contains(text, "segments=2") {
		t.Errorf("found no line, or several, of the two segments\n%s", text)
	}
}
