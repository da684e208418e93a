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
	file, err := os.OpenFile(path+".intents", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	var sx unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_INO|unix.STATX_BTIME, &sx); err != nil {
		t.Fatal(err)
	}
	medium := [2]uint64{sx.Ino, uint64(sx.Btime.Sec)*1e9 + uint64(sx.Btime.Nsec)}
	log, _, _, err := intent.Open(logFile{file}, cut{file}, medium, size)
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Write(data, off); !errors.Is(err, unix.EIO) {
		t.Fatalf("the write: %v", err)
	}
}

// TestInterruptedAtomicWrite: who opens the file again finds what was interrupted
// completed; another file in its place is left alone.
func TestInterruptedAtomicWrite(t *testing.T) {
	for name, direct := range map[string]bool{"buffered": false, "direct": true} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(diskDir(t), "v")
			config := backstore.FileConfig{Path: path, Direct: direct}
			closeStore(t, openFile(t, config))
			data := backstoretest.Pattern(3*page, 5)
			interrupt(t, path, data, 7*page)
			if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, make([]byte, size)) {
				t.Fatalf("it was not interrupted: %v", err)
			}
			closeStore(t, openFile(t, config))
			got, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(got[7*page:][:3*page], data) {
				t.Fatalf("it was not completed: %v", err)
			}
			interrupt(t, path, data, 20*page)
			if err := os.WriteFile(path+"2", got, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(path+"2", path); err != nil {
				t.Fatal(err)
			}
			closeStore(t, openFile(t, config))
			if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, got) {
				t.Errorf("another file was changed: %v", err)
			}
		})
	}
}

// TestAtomicWriteWithoutSpace: nothing of it is there.
func TestAtomicWriteWithoutSpace(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=384k"); err != nil {
		t.Skipf("cannot mount a small tmpfs: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	s, err := backstore.OpenFile(backstore.FileConfig{Path: filepath.Join(dir, "v"), Size: size, Intents: filepath.Join(t.TempDir(), "log")})
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
	s, err := backstore.OpenFile(backstore.FileConfig{Path: path, Size: 64 << 20, Direct: true, Intents: path + ".intents"})
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
