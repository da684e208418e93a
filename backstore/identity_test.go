package backstore_test

import (
	"os"
	"path/filepath"
	"testing"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
)

func look(t *testing.T, path string) backstore.Found {
	t.Helper()
	f, err := backstore.Look(path)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestIdentityOfFile: it stays with the file when that is renamed, written or grown,
// and is the same through links; another file in its place has another.
func TestIdentityOfFile(t *testing.T) {
	for name, dir := range map[string]string{"disk": diskDir(t), "memory": t.TempDir()} {
		path, link, moved := filepath.Join(dir, "v"), filepath.Join(dir, "link"), filepath.Join(dir, "moved")
		if !look(t, path).Missing {
			t.Fatalf("%s: found something", name)
		}
		write(t, path, 100)
		if err := os.Symlink(path, link); err != nil {
			t.Fatal(err)
		}
		was := look(t, path)
		if was.Size != 100 || !look(t, link).Identity.Same(was.Identity) {
			t.Errorf("%s: found %+v, and %+v through a link", name, was, look(t, link))
		}
		if err := os.Rename(path, moved); err != nil {
			t.Fatal(err)
		}
		write(t, path, 100)
		write(t, moved, 300)
		if !look(t, moved).Identity.Same(was.Identity) || look(t, path).Identity.Same(was.Identity) {
			t.Errorf("%s: %+v was moved, and is %+v; in its place is %+v", name, was, look(t, moved), look(t, path))
		}
	}
}

func write(t *testing.T, path string, n int) {
	t.Helper()
	if err := os.WriteFile(path, make([]byte, n), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestSameIdentity: kernels know file systems in several ways.
func TestSameIdentity(t *testing.T) {
	own := backstore.Identity{System: "uuid 1", Inode: 2, Birth: 3}
	for _, test := range []struct {
		other backstore.Identity
		want  bool
	}{
		{own, true},
		{backstore.Identity{System: "fsid 9", Inode: 2, Birth: 3}, true},
		{backstore.Identity{Inode: 2, Birth: 3}, true},
		{backstore.Identity{System: "uuid 2", Inode: 2, Birth: 3}, false},
		{backstore.Identity{System: "uuid 1", Inode: 2, Birth: 4}, false},
		{backstore.Identity{System: "uuid 1", Inode: 2}, true}, // before the kernel told births
		{backstore.Identity{System: "fsid 9", Inode: 2}, false},
		{backstore.Identity{Inode: 2}, false},
		{backstore.Identity{System: "uuid 1", Inode: 3, Birth: 3}, false},
		{backstore.Identity{Device: "WWN 1"}, false},
	} {
		if own.Same(test.other) != test.want || test.other.Same(own) != test.want {
			t.Errorf("%v and %v: expected %t", own, test.other, test.want)
		}
	}
}

// TestIdentityOfDevice: a loop device is what its file is, whatever its number.
func TestIdentityOfDevice(t *testing.T) {
	first, file := loopDevice(t, backstoretest.Size, 512, 0)
	was := look(t, first)
	other, _ := loopDevice(t, backstoretest.Size, 512, 0)
	if was.Size != backstoretest.Size || was.Identity.Device == "" || look(t, other).Identity.Same(was.Identity) {
		t.Errorf("found %+v, and %+v for another", was, look(t, other))
	}
	again := backstoretest.LoopDevice{File: file}.Attach(t)
	if !look(t, again).Identity.Same(was.Identity) {
		t.Errorf("found %+v, expected %+v with another number", look(t, again), was)
	}
}

// TestSameSystem: udev's link to a UUID and the kernel's own are the same file system.
func TestSameSystem(t *testing.T) {
	link := backstore.Identity{System: "link 01234567-89ab-cdef-0123-456789ABCDEF", Inode: 2, Birth: 3}
	for system, want := range map[string]bool{
		"uuid 0123456789abcdef0123456789abcdef":     true,
		"uuid 0123456789abcdef0123456789abcdee":     false,
		"link 01234567-89ab-cdef-0123-456789abcdee": false,
	} {
		if own := (backstore.Identity{System: system, Inode: 2, Birth: 3}); own.Same(link) != want || link.Same(own) != want {
			t.Errorf("%s and %s: expected %t", system, link.System, want)
		}
	}
}
