package backstore_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/internal/intent"
)

// cut is a target whose machine stops after the record has been made: nothing
// reaches the volume, and nothing more the log.
type cut struct{ log *os.File }

func (cut) Reserve(int64, int64) error { return nil }

func (cut) Settle(int64, []byte) error { return nil }

func (cut) ReadAt(b []byte, _ int64) error {
	clear(b)
	return nil
}

func (c cut) WriteStable(int64, ...[]byte) error {
	return errors.Join(unix.EIO, c.log.Close())
}

// logFile is a file as the intent log wants it.
type logFile struct{ *os.File }

func (f logFile) Cut() error { return f.Truncate(0) }

func (f logFile) ReadAt(b []byte, off int64) error {
	_, _ = f.File.ReadAt(b, off) // zeroes behind the end
	return nil
}

func (f logFile) WriteStable(off int64, parts ...[]byte) error {
	_, err := f.WriteAt(bytes.Join(parts, nil), off)
	return err
}

// interrupt leaves a record of an atomic write in the log of a file.
func interrupt(t *testing.T, path string, data []byte, off int64) {
	t.Helper()
	i := backstore.Intents{Dir: filepath.Dir(path)}
	file, err := os.OpenFile(i.Log(look(t, path).Identity), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	var sx unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_INO|unix.STATX_BTIME, &sx); err != nil {
		t.Fatal(err)
	}
	medium := [2]uint64{sx.Ino, uint64(sx.Btime.Sec)*1e9 + uint64(sx.Btime.Nsec)}
	log, _, err := intent.Open(logFile{file}, cut{file}, medium, size, intent.Complete)
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Write(data, off); !errors.Is(err, unix.EIO) {
		t.Fatalf("the write: %v", err)
	}
}

// tear makes what was interrupted half done.
func tear(t *testing.T, path string, data []byte, off int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(data, off); err != nil {
		t.Fatal(err)
	}
}

// TestInterruptedAtomicWrite: who opens the file again, by whatever name, finds what
// was interrupted completed. Another file in its place is left alone, and one that
// somebody has changed there, or that cannot be written, is refused.
func TestInterruptedAtomicWrite(t *testing.T) {
	for name, direct := range map[string]bool{"buffered": false, "direct": true} {
		t.Run(name, func(t *testing.T) {
			dir := diskDir(t)
			path, link := filepath.Join(dir, "v"), filepath.Join(dir, "link")
			config := backstore.FileConfig{Path: path, Size: size, Direct: direct, Intents: backstore.Intents{Dir: dir}}
			open := func(c backstore.FileConfig) error {
				s, err := backstore.OpenFile(c)
				if err == nil {
					closeStore(t, s)
				}
				return err
			}
			if err := errors.Join(open(config), os.Symlink(path, link)); err != nil {
				t.Fatal(err)
			}
			data := backstoretest.Pattern(3*page, 5)
			interrupt(t, path, data, 7*page)
			tear(t, path, data[:page], 7*page)
			readOnly, through := config, config
			readOnly.ReadOnly, through.Path = true, link
			if err := open(readOnly); !errors.Is(err, intent.ErrPending) {
				t.Errorf("read-only: found %v", err)
			}
			if err := open(through); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(got[7*page:][:3*page], data) {
				t.Fatalf("it was not completed: %v", err)
			}

			interrupt(t, path, data, 20*page)
			tear(t, path, data[:page], 20*page)
			tear(t, path, []byte("somebody else"), 21*page)
			if err := open(config); !errors.Is(err, intent.ErrForeign) {
				t.Errorf("changed by somebody else: found %v", err)
			}
			was := look(t, path).Identity
			if err := os.WriteFile(path+"2", got, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(os.Rename(path, path+"1"), os.Rename(path+"2", path), open(config)); err != nil {
				t.Fatal(err)
			}
			if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, got) {
				t.Errorf("another file was changed: %v", err)
			}
			if n, err := backstore.Interrupted(dir, was); n != 1 || err != nil {
				t.Errorf("%d writes wait for the file of before, %v", n, err)
			}
			tear(t, path, data[:page], 20*page)
			config.Intents.From = &was
			if err := open(config); err != nil {
				t.Fatal(err)
			}
			if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now[20*page:][:3*page], data) {
				t.Errorf("what has taken the place of a file did not get what was interrupted there: %v", err)
			}
			if n, err := backstore.Interrupted(dir, was); n != 0 || err != nil {
				t.Errorf("%d writes wait still, %v", n, err)
			}
		})
	}
}

// TestLogOfBefore: versions before went by the path of the store.
func TestLogOfBefore(t *testing.T) {
	for name, forget := range map[string]bool{"completed": false, "given up": true} {
		dir := diskDir(t)
		path, before := filepath.Join(dir, "v"), filepath.Join(dir, "by-path.log")
		config := backstore.FileConfig{Path: path, Size: size, Intents: backstore.Intents{Dir: dir, Before: before, Forget: forget}}
		closeStore(t, openFile(t, config))
		data := backstoretest.Pattern(page, 5)
		interrupt(t, path, data, 0)
		tear(t, path, data[:512], 0)
		if err := os.Rename(config.Intents.Log(look(t, path).Identity), before); err != nil {
			t.Fatal(err)
		}
		closeStore(t, openFile(t, config))
		got, err := os.ReadFile(path)
		if err != nil || bytes.Equal(got[:page], data) == forget {
			t.Errorf("%s: found %x, %v", name, got[:8], err)
		}
		if _, err := os.Stat(before); !os.IsNotExist(err) {
			t.Errorf("%s: the log of before: %v", name, err)
		}
	}
}

// TestAtomicWriteWithoutSpace: nothing of it is there.
func TestAtomicWriteWithoutSpace(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=384k"); err != nil {
		t.Skipf("cannot mount a small tmpfs: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	s, err := backstore.OpenFile(backstore.FileConfig{Path: filepath.Join(dir, "v"), Size: size, Intents: backstore.Intents{Dir: t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	c := client(t, s, true)
	op := backstore.Op{Kind: backstore.Write, FUA: true, Atomic: true, Data: backstoretest.Pattern(256<<10, 1)}
	c.Must(t, op)
	op.Off = 512 << 10
	if err := c.Do(op); !errors.Is(err, backstore.ErrNoSpace) {
		t.Errorf("found %v, expected ErrNoSpace", err)
	}
	if !bytes.Equal(c.Read(t, 512<<10, 256<<10), make([]byte, 256<<10)) {
		t.Error("some of it was written")
	}
}

// BenchmarkAtomic compares writes that are stable with those that are atomic, too.
func BenchmarkAtomic(b *testing.B) {
	path := filepath.Join(diskDir(b), "v")
	s, err := backstore.OpenFile(backstore.FileConfig{Path: path, Size: 64 << 20, Direct: true, Intents: backstore.Intents{Dir: filepath.Dir(path)}})
	if err != nil {
		b.Fatal(err)
	}
	c := client(b, s, true)
	for _, n := range []int{page, 256 << 10} {
		data := backstoretest.Pattern(n, 1)
		for name, atomic := range map[string]bool{"stable": false, "atomic": true} {
			b.Run(fmt.Sprintf("%s/%dKiB", name, n>>10), func(b *testing.B) {
				b.SetBytes(int64(n))
				for i := range b.N {
					op := backstore.Op{Kind: backstore.Write, FUA: true, Atomic: atomic, Off: int64(i%64) * (256 << 10), Data: data}
					if err := c.Do(op); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// TestLogOfTwo: a log serves one store at a time.
func TestLogOfTwo(t *testing.T) {
	dir := diskDir(t)
	config := backstore.FileConfig{Path: filepath.Join(dir, "v"), Size: size, Intents: backstore.Intents{Dir: dir}}
	closeStore(t, openFile(t, config))
	other, err := os.OpenFile(config.Intents.Log(look(t, config.Path).Identity), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Flock(int(other.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if _, err := backstore.OpenFile(config); !errors.Is(err, unix.EWOULDBLOCK) {
		t.Errorf("found %v, expected a refusal", err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	closeStore(t, openFile(t, config))
}
