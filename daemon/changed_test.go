package daemon

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"lunar/daemon/state"
	"lunar/internal/cli"
	"lunar/internal/eventually"
)

// crashed serves, writes everything into the cache alone, and is killed. Its store was
// not being written.
func (w *writeBack) crashed(t *testing.T) {
	t.Helper()
	s := serveChild(t, w.args()...)
	writeAll(t, w.dial(t, s.portal), 0)
	tick(t)
	_ = s.end(t, syscall.SIGKILL)
	if n := w.inFile(t, 0); n > 0 {
		t.Errorf("%d extents are in the file although nothing had to be written: the test proves nothing", n)
	}
}

// tick returns when the clock has gone on that files get their times by.
func tick(t *testing.T) {
	t.Helper()
	var was, now unix.Timespec
	for i := 0; now == was; i++ {
		if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			was = now
		}
	}
}

// say runs lunar adopt or forget.
func (w *writeBack) say(t *testing.T, what string) {
	t.Helper()
	var out, log eventually.Output
	if status := run(t.Context(), append([]string{what, "back"}, w.args()...), cli.Console{Out: &out, Err: &log}); status != cli.ExitOK {
		t.Fatalf("found exit status %d\n%s", status, &log)
	}
}

const backVolume = "{type: file, path: back.img, size: 16MiB, write: back, cache: {flush-age: 1h}}"

// TestUnwrittenDataOfAnotherStore: unwritten data get into the store that they are for,
// as it was, and into nothing else until an administrator says so.
func TestUnwrittenDataOfAnotherStore(t *testing.T) {
	rename := func(t *testing.T, from, to string) {
		t.Helper()
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	other := bytes.Repeat([]byte("somebody else's"), 16<<20/15+1)[:16<<20]
	for name, test := range map[string]struct {
		meanwhile func(t *testing.T, w *writeBack, file string)
		want      []string // of the refusal
	}{
		"moved": {func(t *testing.T, w *writeBack, file string) {
			rename(t, file, file+".moved")
			w.configure(t, strings.Replace(backVolume, "back.img", "back.img.moved", 1))
		}, []string{`for DIR/back.img, from when it was volume "back"`, "DIR/back.img.moved"}},
		"copied away": {func(t *testing.T, w *writeBack, file string) {
			writeFile(t, file+".moved", string(w.image(t)))
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			w.configure(t, strings.Replace(backVolume, "back.img", "back.img.moved", 1))
		}, []string{`for DIR/back.img, from when it was volume "back"`, "DIR/back.img.moved"}},
		"replaced": {func(t *testing.T, _ *writeBack, file string) {
			writeFile(t, file+".new", string(other))
			rename(t, file+".new", file)
		}, []string{`for DIR/back.img, from when it was volume "back"`, "; at DIR/back.img is inode"}},
		"written in place": {func(t *testing.T, _ *writeBack, file string) { writeFile(t, file, string(other)) },
			[]string{"somebody else has written to the store"}},
		"written in place, with its time put back": {func(t *testing.T, _ *writeBack, file string) {
			info, err := os.Stat(file)
			if err != nil {
				t.Fatal(err)
			}
			f, err := os.OpenFile(file, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if _, err := f.WriteAt([]byte("x"), 15<<20); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(file, info.ModTime(), info.ModTime()); err != nil {
				t.Fatal(err)
			}
		}, []string{"somebody else has changed the store", "their time was put back"}},
		"of another mode": {func(t *testing.T, _ *writeBack, file string) {
			if err := os.Chmod(file, 0o640); err != nil {
				t.Fatal(err)
			}
		}, []string{"somebody else has changed the store", "owner, mode"}},
	} {
		for _, say := range []string{"adopt", "forget"} {
			t.Run(name+", "+say, func(t *testing.T) {
				t.Parallel()
				w := newWriteBack(t)
				w.crashed(t)
				file := filepath.Join(w.dir, "back.img")
				test.meanwhile(t, w, file)
				if _, err := os.Stat(file + ".moved"); err == nil {
					file += ".moved"
				}
				before, _ := os.ReadFile(file)
				wants := []string{"lunar adopt back", "lunar forget back"}
				for _, want := range test.want {
					wants = append(wants, strings.ReplaceAll(want, "DIR", w.dir))
				}
				expectRefusal(t, w, wants...)
				if now, err := os.ReadFile(file); err != nil || !bytes.Equal(now, before) {
					t.Errorf("a refusal has changed the file: %v", err)
				}
				w.say(t, say)
				s := serve(t, w.args()...)
				c := w.dial(t, s.portal)
				want := before[:64<<10]
				if say == "adopt" {
					want = pattern(0, 0)
				}
				if got := transfer(t, c, cdb10(0x28, 0), 0, nil, 64<<10); !bytes.Equal(got, want) {
					t.Errorf("after %s found %q", say, got[:32])
				}
				logout(t, c)
				if status := s.stop(); status != cli.ExitOK {
					t.Errorf("found exit status %d\n%s", status, s.log)
				}
				if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got[:64<<10], want) {
					t.Errorf("the file has %q, %v", got[:32], err)
				}
				again := serve(t, w.args()...) // it needs to be said once
				if status := again.stop(); status != cli.ExitOK {
					t.Errorf("found exit status %d\n%s", status, again.log)
				}
			})
		}
	}
}

// TestRefusedSegmentOfOlderVersion: the version that is to write what the segment has
// finds the state directory as it left it.
func TestRefusedSegmentOfOlderVersion(t *testing.T) {
	w := newWriteBack(t)
	w.crashed(t)
	left := map[string]string{}
	for _, name := range []string{"identity", "segment.note"} {
		file := state.Marked{Kind: name, Dir: w.dir, Name: name}
		text, _, err := file.Read()
		if err == nil {
			err = os.Remove(string(file.Mark()))
		}
		if err != nil {
			t.Fatal(err)
		}
		left[file.Path()] = string(text)
		writeFile(t, file.Path(), string(text))
	}
	text, err := os.ReadFile(w.config)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, w.config, strings.Replace(string(text), "block-size: 64KiB", "block-size: 32KiB", 1))
	expectRefusal(t, w, "the version of tgtd that used it last")
	for path, want := range left {
		if found, err := os.ReadFile(path); err != nil || string(found) != want {
			t.Errorf("%s holds %q after a refusal, expected %q: %v", path, found, want, err)
		}
	}
}

// TestFailedStartHasChangedStore: a start that grew the file of a volume and failed
// before the cache had the volume does not look like somebody else to the next.
func TestFailedStartHasChangedStore(t *testing.T) {
	w := newWriteBack(t)
	w.crashed(t)
	grown := strings.Replace(backVolume, "16MiB", "64MiB", 1)
	writeFile(t, filepath.Join(w.dir, "key"), strings.Repeat("9f", 32))
	w.configure(t, strings.Replace(grown, "write:", "encryption: {key-file: key, header-file: no/such/header}, write:", 1))
	var out, log eventually.Output
	if status := run(t.Context(), append([]string{"serve"}, w.args()...), cli.Console{Out: &out, Err: &log}); status != cli.ExitFailure || !strings.Contains(log.String(), "no/such") {
		t.Fatalf("found exit status %d\n%s", status, &log)
	}
	if n := sizeOf(t, filepath.Join(w.dir, "back.img")); n != 64<<20 {
		t.Fatalf("the file has %d bytes: the test proves nothing", n)
	}
	w.configure(t, grown)
	s := serve(t, w.args()...)
	if got := transfer(t, w.dial(t, s.portal), cdb10(0x28, 0), 0, nil, 64<<10); !bytes.Equal(got, pattern(0, 0)) {
		t.Error("unwritten data are lost")
	}
}

// TestEncryptedVolumeAfterCrash: its store, which the cache knows through the cipher, is
// not another one for who looks at it before.
func TestEncryptedVolumeAfterCrash(t *testing.T) {
	w := newWriteBack(t)
	writeFile(t, filepath.Join(w.dir, "key"), strings.Repeat("9f", 32))
	w.configure(t, strings.Replace(backVolume, "write:", "encryption: {key-file: key}, write:", 1))
	w.crashed(t)
	s := serve(t, w.args()...)
	if got := transfer(t, w.dial(t, s.portal), cdb10(0x28, 0), 0, nil, 64<<10); !bytes.Equal(got, pattern(0, 0)) {
		t.Error("unwritten data are lost")
	}
}
