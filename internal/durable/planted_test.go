package durable

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// planted are what somebody who may write to a directory can put there.
var planted = map[string]func(path, victim string) error{
	"symbolic link": func(path, victim string) error { return os.Symlink(victim, path) },
	"dangling link": func(path, victim string) error { return os.Symlink(victim+".not", path) },
	"hard link":     func(path, victim string) error { return os.Link(victim, path) },
	"pipe":          func(path, _ string) error { return unix.Mkfifo(path, 0o600) },
	"socket":        func(path, _ string) error { return unix.Mknod(path, unix.S_IFSOCK|0o600, 0) },
	"directory":     func(path, _ string) error { return os.Mkdir(path, 0o700) },
}

// atPlanted calls try for each of planted at a path in a directory that a symbolic
// link leads to, as administrators have them, and looks that the victim stays.
func atPlanted(t *testing.T, name string, try func(t *testing.T, kind, path string)) {
	for kind, plant := range planted {
		t.Run(kind, func(t *testing.T) {
			real, victim := t.TempDir(), filepath.Join(t.TempDir(), "victim")
			dir := filepath.Join(t.TempDir(), "dir")
			err := errors.Join(os.Symlink(real, dir), os.WriteFile(victim, []byte("precious"), 0o600), plant(filepath.Join(real, name), victim))
			if err != nil {
				t.Fatal(err)
			}
			try(t, kind, filepath.Join(dir, "f"))
			if got, err := os.ReadFile(victim); err != nil || string(got) != "precious" {
				t.Errorf("the victim has %q, %v", got, err)
			}
			if _, err := os.Stat(victim + ".not"); err == nil {
				t.Error("a file was made where a link led")
			}
		})
	}
}

// TestReplacePlanted: what is at the name that Replace writes to first, or at its own,
// is replaced and not followed; a directory is an error.
func TestReplacePlanted(t *testing.T) {
	for _, name := range []string{"f.new", "f"} {
		atPlanted(t, name, func(t *testing.T, kind, path string) {
			err := Replace(path, []byte("ours"))
			if kind == "directory" {
				if err == nil {
					t.Error("a directory was replaced")
				}
				return
			}
			info, missing := os.Lstat(path)
			got, unread := Read(path)
			if err = errors.Join(err, missing, unread); err != nil || string(got) != "ours" || !info.Mode().IsRegular() || info.Mode().Perm() != 0o600 {
				t.Errorf("found %q, %v, %v", got, info, err)
			}
		})
	}
}

// TestOpenPlanted: only what is our own is opened for writing. A file that has a second
// name, as backups by hard links make, may be read.
func TestOpenPlanted(t *testing.T) {
	for _, flags := range []int{unix.O_RDWR | unix.O_CREAT, unix.O_WRONLY, unix.O_RDONLY} {
		atPlanted(t, "f", func(t *testing.T, kind, path string) {
			f, err := Open(path, flags)
			if kind == "hard link" && flags == unix.O_RDONLY {
				if err != nil {
					t.Error(err)
				}
				f.Close()
				return
			}
			if !errors.Is(err, ErrForeign) {
				t.Errorf("found %v", err)
			}
		})
	}
	path := filepath.Join(t.TempDir(), "f")
	f, err := Open(path, unix.O_RDWR|unix.O_CREAT)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("found %v, %v", info, err)
	}
}

// TestHugePlanted: a file that was made longer than any of ours takes no memory.
func TestHugePlanted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for _, length := range []int64{maxFile + 1, 1 << 40} {
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, length)); err != nil {
			t.Fatal(err)
		}
		if text, err := Read(path); !errors.Is(err, ErrForeign) {
			t.Errorf("%d bytes: found %d, %v", length, len(text), err)
		}
	}
	if err := Replace(path, make([]byte, maxFile+1)); !errors.Is(err, ErrForeign) {
		t.Errorf("found %v", err)
	}
}

// TestRemovePlanted: a link is removed, and not what it leads to.
func TestRemovePlanted(t *testing.T) {
	atPlanted(t, "f", func(t *testing.T, kind, path string) {
		if err := Remove(path); (err == nil) != (kind != "directory") {
			t.Error(err)
		}
	})
}

// TestOwner: root, who runs a command in the directory of a server of another user,
// leaves files that this user can read, and opens his; those of a third one are nobody's.
func TestOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to have files of others")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	err := errors.Join(os.Chown(dir, 1234, 1235), Replace(path, []byte("text")))
	var st unix.Stat_t
	if err = errors.Join(err, unix.Lstat(path, &st)); err != nil || st.Uid != 1234 || st.Gid != 1235 {
		t.Errorf("found owner %d, group %d, %v", st.Uid, st.Gid, err)
	}
	for owner, fine := range map[int]bool{0: true, 1234: true, 4321: false} {
		if err := os.Chown(path, owner, 0); err != nil {
			t.Fatal(err)
		}
		f, err := Open(path, unix.O_RDWR)
		if (err == nil) != fine {
			t.Errorf("owner %d: found %v", owner, err)
		}
		f.Close()
	}
}
