package images_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lunar/backstore/backstoretest"
	"lunar/backstore/images"
)

const mib = 1 << 20

// disk is a file with images.
type disk struct {
	*testing.T
	*os.File
	images.Images
	path string
}

// newDisk makes a file of 8 MiB, whose last byte is 1.
func newDisk(t *testing.T, dir string) *disk {
	t.Helper()
	path := filepath.Join(dir, "disk.img")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	of, err := images.Of(path, int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	d := &disk{t, f, of, path}
	d.fill(1)
	return d
}

// fill writes a byte to the first and the last MiB.
func (d *disk) fill(b byte) {
	d.Helper()
	part := bytes.Repeat([]byte{b}, mib)
	for _, at := range []int64{0, 7 * mib} {
		if _, err := d.WriteAt(part, at); err != nil {
			d.Fatal(err)
		}
	}
}

// take makes an image.
func (d *disk) take(name string, at time.Time) {
	d.Helper()
	draft, err := d.Begin(name)
	if err != nil {
		d.Fatal(err)
	}
	if err := errors.Join(draft.Take(d.Context(), nil, ""), draft.Keep(at), draft.Discard()); err != nil {
		d.Fatal(err)
	}
}

// has fails if a file is not of 8 MiB with a byte where fill writes.
func (d *disk) has(path string, b byte) {
	d.Helper()
	got, err := os.ReadFile(path)
	want := slices.Concat(bytes.Repeat([]byte{b}, mib), make([]byte, 6*mib), bytes.Repeat([]byte{b}, mib))
	if err != nil || !bytes.Equal(got, want) {
		d.Errorf("%s: %v, %d bytes, expected those of %d", path, err, len(got), b)
	}
}

// names are those of a directory.
func (d *disk) names(dir string) (all []string) {
	d.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// TestImages: an image keeps what the file held, takes no space until that is written over,
// and neither a clone nor what is restored changes it.
func TestImages(t *testing.T) {
	for _, system := range []string{"xfs", "btrfs"} {
		t.Run(system, func(t *testing.T) {
			d := newDisk(t, backstoretest.Reflink(t, system))
			moment := time.Unix(1_700_000_000, 0)
			d.take("one", moment)
			d.space("one", 0, 2*mib)
			d.fill(2)
			d.take("two", moment.Add(time.Hour))
			if err := d.Sync(); err != nil {
				t.Fatal(err)
			}
			d.space("one", 2*mib, 0)
			all, err := d.List()
			if err != nil || len(all) != 2 || all[0].Name != "one" || !all[0].At.Equal(moment) || all[0].Size != 8*mib || all[1].Name != "two" {
				t.Fatalf("found %+v, %v", all, err)
			}
			d.has(all[0].Path, 1)
			d.has(all[1].Path, 2)
			if _, err := d.Begin("one"); !errors.Is(err, images.ErrExists) {
				t.Errorf("found %v, expected that there is one", err)
			}
			d.cloneAndRestore()
			if err := errors.Join(d.Remove("one"), d.Remove("two")); err != nil {
				t.Error(err)
			}
			if err := d.Remove("one"); !errors.Is(err, images.ErrNone) {
				t.Errorf("found %v, expected that there is none", err)
			}
			if left := d.names(d.path + images.Suffix); left != nil {
				t.Errorf("found %v left", left)
			}
		})
	}
}

func (d *disk) space(name string, owned, shared int64) {
	d.Helper()
	found, err := d.Space(images.Image{Path: filepath.Join(d.path+images.Suffix, name)})
	if want := (images.Space{Owned: owned, Shared: shared}); err != nil || found != want {
		d.Errorf("image %s: found %+v, %v, expected %+v", name, found, err, want)
	}
}

func (d *disk) cloneAndRestore() {
	d.Helper()
	path := filepath.Join(filepath.Dir(d.path), "clone.img")
	clone, err := d.Clone(d.Context(), "one", path)
	if err != nil {
		d.Fatal(err)
	}
	if err := errors.Join(clone.Place(), clone.Settle()); err != nil {
		d.Fatal(err)
	}
	d.has(path, 1)
	if err := os.WriteFile(path, []byte("written to"), 0); err != nil {
		d.Error(err)
	}
	if _, err := d.Clone(d.Context(), "one", path); err == nil {
		d.Error("a clone took the place of another file")
	}
	restored, err := d.Restore(d.Context(), "one", 8*mib, "", "")
	if err != nil {
		d.Fatal(err)
	}
	d.has(d.path, 2)
	if err := restored.Place(); err != nil {
		d.Fatal(err)
	}
	d.has(d.path, 1)
	if info, err := os.Stat(d.path); err != nil || info.Mode().Perm() != 0o640 {
		d.Errorf("found %v, %v, expected the rights that the file had", info, err)
	}
	if err := restored.Undo(); err != nil {
		d.Fatal(err)
	}
	d.has(d.path, 2)
	if err := restored.Settle(); err != nil {
		d.Error(err)
	}
	if _, err := d.Restore(d.Context(), "one", 4*mib, "", ""); err == nil {
		d.Error("a file was made shorter")
	}
	d.has(filepath.Join(d.path+images.Suffix, "one"), 1)
	if _, err := d.Restore(d.Context(), "one", 8*mib, "two", ""); !errors.Is(err, images.ErrExists) {
		d.Errorf("found %v, expected that what the file held cannot be named so", err)
	}
	if restored, err = d.Restore(d.Context(), "one", 8*mib, "kept", "of a key"); err == nil {
		err = errors.Join(restored.Place(), restored.Settle())
	}
	if err != nil {
		d.Fatal(err)
	}
	d.has(d.path, 1)
	d.kept(2)
	if err := d.Remove("kept"); err != nil {
		d.Error(err)
	}
}

// kept fails if there is no image of what the file held before, with what tells its key.
func (d *disk) kept(b byte) {
	d.Helper()
	path := filepath.Join(d.path+images.Suffix, "kept")
	d.has(path, b)
	all, err := d.List()
	if i := slices.IndexFunc(all, func(i images.Image) bool { return i.Name == "kept" }); err != nil || i < 0 || all[i].Key != "of a key" {
		d.Errorf("found %+v, %v, expected the key", all, err)
	}
	if !images.IsImage(path) || images.IsImage(d.path) {
		d.Error("found another file taken for an image")
	}
}

// TestDraw: an image that was drawn while the file was written to needs only what was altered
// since, also at the end of a file that is no multiple of the file system's blocks.
func TestDraw(t *testing.T) {
	for _, system := range []string{"xfs", "btrfs"} {
		t.Run(system, func(t *testing.T) {
			d := newDisk(t, backstoretest.Reflink(t, system))
			const size = 8*mib - 512
			if err := d.Truncate(size); err != nil {
				t.Fatal(err)
			}
			draft, err := d.Begin("one")
			if err != nil {
				t.Fatal(err)
			}
			if err := draft.Draw(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			var parts []images.Range
			for _, at := range []int64{0, 512, 3*mib + 4096, size - 512} {
				if _, err := d.WriteAt(bytes.Repeat([]byte{7}, 512), at); err != nil {
					t.Fatal(err)
				}
				parts = append(parts, images.Range{Off: at, Len: 512})
			}
			if err := errors.Join(draft.Draw(t.Context(), parts[:2]), draft.Take(t.Context(), parts, ""), draft.Keep(time.Now())); err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(d.path)
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(filepath.Join(d.path+images.Suffix, "one"))
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("found %v, %d bytes, expected the %d of the file", err, len(got), len(want))
			}
		})
	}
}

// TestTidy: wherever a server was killed, what is half-made goes, what is whole stays, and a
// clone that is served keeps its file.
func TestTidy(t *testing.T) {
	d := newDisk(t, backstoretest.Reflink(t, "xfs"))
	d.take("whole", time.Now())
	dir := filepath.Dir(d.path)
	place := func(name string) images.Copy {
		c, err := d.Clone(t.Context(), "whole", filepath.Join(dir, name), filepath.Join(dir, name+".header"))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	begun, err := d.Begin("begun")
	if err != nil {
		t.Fatal(err)
	}
	unplaced, unserved, served := place("unplaced"), place("unserved"), place("served")
	restored, err := d.Restore(t.Context(), "whole", 8*mib, "kept", "")
	if err = errors.Join(err, unserved.Place(), served.Place()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"unserved", "served"} {
		if err := os.WriteFile(filepath.Join(dir, name+".header"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []any{begun, unplaced, unserved, served, restored} {
		images.Kill(c)
	}
	if err := d.Tidy(func(path string) bool {
		return strings.HasSuffix(path, "served") && !strings.HasSuffix(path, "unserved")
	}); err != nil {
		t.Error(err)
	}
	if left := d.names(d.path + images.Suffix); !slices.Equal(left, []string{"whole"}) {
		t.Errorf("found %v, expected the whole one", left)
	}
	if left := d.names(dir); !slices.Equal(left, []string{"disk.img", "disk.img" + images.Suffix, "served", "served.header"}) {
		t.Errorf("found %v, expected the clone that is served", left)
	}
}

// restored has the file changed places with the image "whole", which has other contents. The
// rollback is not settled.
func (d *disk) restored() images.Copy {
	d.Helper()
	d.take("whole", time.Now())
	d.fill(2)
	restored, err := d.Restore(d.Context(), "whole", 8*mib, "kept", "of a key")
	if err == nil {
		err = restored.Place()
	}
	if err != nil {
		d.Fatal(err)
	}
	return restored
}

// TestTidyRestored: a server that was killed once the files had changed places has what the
// volume held as the image that it was to be, and one that was killed between any two steps of
// its end, too.
func TestTidyRestored(t *testing.T) {
	d := newDisk(t, backstoretest.Reflink(t, "xfs"))
	restored := d.restored()
	images.Kill(restored)
	half := d.names(d.path + images.Suffix)
	note, err := os.ReadFile(filepath.Join(d.path+images.Suffix, ".restore.place"))
	if err != nil {
		t.Fatal(err)
	}
	again := d.opened()
	for _, step := range []string{"placed", "named", "named, with half a note"} {
		if err := again.Tidy(func(string) bool { return false }); err != nil {
			t.Error(err)
		}
		d.has(d.path, 1)
		again.kept(2)
		if left := d.names(d.path + images.Suffix); !slices.Equal(left, []string{"kept", "whole"}) {
			t.Fatalf("%s: found %v of %v", step, left, half)
		}
		for _, name := range []string{".restore.place", ".restore.place.new"} {
			if err := os.WriteFile(filepath.Join(d.path+images.Suffix, name), note, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestRestoredAgain: a rollback does not take away what an earlier one could not name.
func TestRestoredAgain(t *testing.T) {
	d := newDisk(t, backstoretest.Reflink(t, "xfs"))
	restored := d.restored()
	blocked := filepath.Join(d.path+images.Suffix, "kept")
	if err := os.Mkdir(blocked, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := restored.Settle(); err == nil || !strings.Contains(err.Error(), ".restore.making, and no snapshot kept yet") {
		t.Errorf("found %v, expected where it is", err)
	}
	again := d.opened()
	if _, err := again.Restore(t.Context(), "whole", 8*mib, "", ""); err == nil {
		t.Error("found it given up")
	}
	if err := os.Remove(blocked); err != nil {
		t.Fatal(err)
	}
	next, err := again.Restore(t.Context(), "whole", 8*mib, "", "")
	if err != nil {
		t.Fatal(err)
	}
	again.kept(2)
	if err := next.Settle(); err != nil {
		t.Error(err)
	}
}

// opened is the disk as the next process finds it.
func (d *disk) opened() *disk {
	d.Helper()
	f, err := os.OpenFile(d.path, os.O_RDWR, 0)
	if err != nil {
		d.Fatal(err)
	}
	d.Cleanup(func() { f.Close() })
	of, err := images.Of(d.path, int(f.Fd()))
	if err != nil {
		d.Fatal(err)
	}
	return &disk{d.T, f, of, d.path}
}

// TestFull: on a full file system there is no image, clone or file to restore, or a whole one,
// and nothing is left of what there is not.
func TestFull(t *testing.T) {
	d := newDisk(t, backstoretest.Reflink(t, "xfs"))
	d.take("whole", time.Now())
	d.fill(2)
	if err := d.Sync(); err != nil {
		t.Fatal(err)
	}
	backstoretest.Fill(t, filepath.Dir(d.path))
	var space error
	for i := 0; space == nil && i < 1<<16; i++ { // metadata has some room of its own
		name := fmt.Sprintf("s%d", i)
		draft, err := d.Begin(name)
		if err == nil {
			err = errors.Join(draft.Take(t.Context(), nil, ""), draft.Keep(time.Now()), draft.Discard())
		}
		space = err
	}
	if !errors.Is(space, unix.ENOSPC) {
		t.Fatalf("found %v, expected that there is no space", space)
	}
	path := filepath.Join(filepath.Dir(d.path), "clone")
	if c, err := d.Clone(t.Context(), "whole", path); err == nil {
		err = errors.Join(c.Place(), c.Undo())
		t.Logf("a clone: %v", err)
	}
	if r, err := d.Restore(t.Context(), "whole", 8*mib, "kept", ""); err == nil {
		t.Logf("restored: %v", r.Settle())
	}
	for _, name := range d.names(d.path + images.Suffix) {
		if !images.ValidName(name) {
			t.Errorf("found %s left", name)
		}
		want := byte(2)
		if name == "whole" {
			want = 1
		}
		d.has(filepath.Join(d.path+images.Suffix, name), want)
	}
	if _, err := os.Lstat(path); err == nil {
		t.Error("found half a clone")
	}
	d.has(d.path, 2)
}

// TestAmongImages: a clone does not lie among images, which would take it for one.
func TestAmongImages(t *testing.T) {
	d := newDisk(t, backstoretest.Reflink(t, "xfs"))
	d.take("whole", time.Now())
	if _, err := d.Clone(t.Context(), "whole", filepath.Join(d.path+images.Suffix, "auto-clone")); err == nil || !strings.Contains(err.Error(), "not among snapshots") {
		t.Errorf("found %v, expected that it is refused", err)
	}
}

// TestDeadline: sharing ends soon after its context has, and what there is of it goes.
func TestDeadline(t *testing.T) {
	d := newDisk(t, backstoretest.Reflink(t, "xfs"))
	draft, err := d.Begin("late")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := draft.Take(ctx, nil, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("found %v, expected that it was broken off", err)
	}
	if err := draft.Discard(); err != nil {
		t.Error(err)
	}
	if left := d.names(d.path + images.Suffix); left != nil {
		t.Errorf("found %v left", left)
	}
}

// TestUsed: an image that somebody has locked is not removed.
func TestUsed(t *testing.T) {
	d := newDisk(t, backstoretest.Reflink(t, "xfs"))
	d.take("used", time.Now())
	f, err := os.Open(filepath.Join(d.path+images.Suffix, "used"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if err := d.Remove("used"); !errors.Is(err, images.ErrUsed) {
		t.Errorf("found %v, expected that it is used", err)
	}
}

// TestElsewhere: a file system that cannot is named, with those that can.
func TestElsewhere(t *testing.T) {
	small := t.TempDir()
	if err := unix.Mount("tmpfs", small, "tmpfs", 0, "size=64M"); err != nil {
		t.Skipf("cannot mount a small tmpfs: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(small, unix.MNT_DETACH) })
	d := newDisk(t, small)
	_, err := d.Begin("any")
	if !errors.Is(err, images.ErrUnsupported) || !strings.Contains(fmt.Sprint(err), "tmpfs") || !strings.Contains(fmt.Sprint(err), "xfs") {
		t.Errorf("found %v, expected which file system it is, and which can", err)
	}
	if left := d.names(d.path + images.Suffix); left != nil {
		t.Errorf("found %v left", left)
	}
}

// TestNames: only plain names are those of images.
func TestNames(t *testing.T) {
	for name, want := range map[string]bool{"a": true, "20261126T070000.000Z": true, "a.b-c_d": true, "": false, ".a": false, "a/b": false, "..": false, "a b": false, strings.Repeat("x", 65): false, "ä": false} {
		if images.ValidName(name) != want {
			t.Errorf("%q: expected %t", name, want)
		}
	}
}
