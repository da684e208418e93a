package daemon

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"lunar/backstore"
	"lunar/daemon/state"
	"lunar/internal/intent"
)

// broken is a target of which the machine stops after half of a write.
type broken struct{ store, log *os.File }

func (broken) Reserve(int64, int64) error { return nil }

func (broken) Settle(int64, []byte) error { return nil }

func (b broken) ReadAt(p []byte, off int64) error {
	_, err := b.store.ReadAt(p, off)
	return err
}

func (b broken) WriteStable(off int64, parts ...[]byte) error {
	_, err := b.store.WriteAt(parts[0][:len(parts[0])/2], off)
	return errors.Join(errBroken, err, b.log.Close())
}

var errBroken = errors.New("the machine has stopped")

// slots is a file as an intent log wants it.
type slots struct{ *os.File }

func (s slots) Cut() error { return s.Truncate(0) }

func (s slots) ReadAt(b []byte, off int64) error {
	_, _ = s.File.ReadAt(b, off) // zeroes behind the end
	return nil
}

func (s slots) WriteStable(off int64, parts ...[]byte) error {
	_, err := s.WriteAt(bytes.Join(parts, nil), off)
	return err
}

// interruptAt leaves half of an atomic write in a volume's file, and all of it in its log.
func (s *storeSite) interruptAt(t *testing.T, path string, data []byte, off int64) {
	t.Helper()
	found, err := backstore.Look(path)
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.OpenFile(state.IntentLogs(s.dir).Log(found.Identity), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	store, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	l, _, err := intent.Open(slots{log}, broken{store, log}, [2]uint64{found.Identity.Inode, found.Identity.Birth}, found.Size, intent.Complete)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Write(data, off); !errors.Is(err, errBroken) {
		t.Fatalf("the write: %v", err)
	}
}

// TestInterruptedAtomicWrites: what an interrupted atomic write leaves is completed in
// the file that it was for, by whatever name, and in no other: not in a backup that has taken its place,
// by a new file or in the old one.
func TestInterruptedAtomicWrites(t *testing.T) {
	data := bytes.Repeat([]byte("new "), 2048)
	old := bytes.Repeat([]byte("old "), 1<<18)
	other := bytes.Repeat([]byte("bak "), 1<<18)
	completed := bytes.Clone(old)
	copy(completed[4096:], data)
	half := bytes.Clone(old)
	copy(half[4096:], data[:4096])
	for name, test := range map[string]struct {
		meanwhile func(t *testing.T, s *storeSite, file string)
		refused   string // empty: it is not
		say       string
		want      []byte
	}{
		"nothing": {func(*testing.T, *storeSite, string) {}, "", "", completed},
		"a link": {func(t *testing.T, s *storeSite, file string) {
			if err := os.Symlink(file, filepath.Join(s.dir, "link")); err != nil {
				t.Fatal(err)
			}
			s.configure(t, "{type: file, path: link}")
		}, "", "", completed},
		"moved": {func(t *testing.T, s *storeSite, file string) {
			if err := os.Rename(file, filepath.Join(s.dir, "moved")); err != nil {
				t.Fatal(err)
			}
			s.configure(t, "{type: file, path: moved}")
		}, "", "", completed},
		"replaced": {func(t *testing.T, _ *storeSite, file string) {
			writeFile(t, file+".bak", string(other))
			if err := os.Rename(file+".bak", file); err != nil {
				t.Fatal(err)
			}
		}, "1 interrupted atomic writes for what was at ", "forget", other},
		"restored in place": {func(t *testing.T, _ *storeSite, file string) { writeFile(t, file, string(other)) },
			"somebody else has written to bytes 4096 to 12287", "forget", other},
		"read-only": {func(t *testing.T, s *storeSite, file string) {
			s.configure(t, "{type: file, path: mount/v, read-only: true}")
		}, "open it for writing once", "forget", half},
		"copied": {func(t *testing.T, _ *storeSite, file string) {
			writeFile(t, file+".new", string(half))
			if err := os.Rename(file+".new", file); err != nil {
				t.Fatal(err)
			}
		}, "lunar adopt v", "adopt", completed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStoreSite(t, "{type: file, path: mount/v}")
			file := filepath.Join(s.mount, "v")
			writeFile(t, file, string(old))
			s.visit(t)
			s.interruptAt(t, file, data, 4096)
			test.meanwhile(t, s, file)
			if moved := filepath.Join(s.dir, "moved"); name == "moved" {
				file = moved
			}
			if test.refused != "" {
				before, _ := os.ReadFile(file)
				for range 2 {
					s.refused(t, test.refused)
				}
				if now, err := os.ReadFile(file); err != nil || !bytes.Equal(now, before) {
					t.Errorf("a refusal has changed the file: %v", err)
				}
				s.say(t, test.say)
			}
			s.visit(t)
			if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, test.want) {
				t.Errorf("found %q %q, %v", got[4096:4104], got[8192:8200], err)
			}
		})
	}
}

// TestLostIntentLog: a start with a log that was deleted does not say that nothing was
// interrupted, until an administrator does; and it holds once.
func TestLostIntentLog(t *testing.T) {
	for _, volume := range []string{"{type: file, path: mount/v}", "{type: file, path: mount/v, read-only: true}"} {
		for _, said := range []string{"adopt", "forget"} {
			s := newStoreSite(t, "{type: file, path: mount/v}")
			file := filepath.Join(s.mount, "v")
			writeFile(t, file, string(bytes.Repeat([]byte("old "), 1<<18)))
			s.visit(t)
			s.interruptAt(t, file, bytes.Repeat([]byte("new "), 2048), 4096)
			half, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s.loseLog(t, file)
			s.configure(t, volume)
			for _, want := range []string{"found no file, and there was one", "Put a copy of the log back", "lunar adopt v", "lunar forget v"} {
				s.refused(t, want)
			}
			s.say(t, said)
			s.visit(t)
			s.visit(t)
			if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, half) {
				t.Errorf("%s: the file is another now: %v", said, err)
			}
			s.configure(t, "{type: file, path: mount/v}")
			s.visit(t)
			s.loseLog(t, file)
			s.refused(t, "found no file, and there was one")
		}
	}
}

// loseLog deletes the intent log of a file.
func (s *storeSite) loseLog(t *testing.T, path string) {
	t.Helper()
	found, err := backstore.Look(path)
	if err == nil {
		err = os.Remove(state.IntentLogs(s.dir).Log(found.Identity))
	}
	if err != nil {
		t.Fatal(err)
	}
}
