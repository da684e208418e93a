package durable

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"
)

// fragile is a disk in memory that can lose power. Each step that is not stable
// yet may have reached the medium or not, whatever the others did.
type fragile struct {
	names  map[string]int // inodes by path, as the running system sees them
	data   []string       // of the inodes
	stable struct {
		names map[string]int
		data  map[int]string
	}
	syncs   []string       // directories, in order
	pending []func(*image) // what may have reached the medium besides
	steps   int            // until the power goes
}

// image is what is found on the medium.
type image struct {
	names map[string]int
	data  map[int]string
}

var errPower = errors.New("the power is gone")

func (f *fragile) step() error {
	if f.steps == 0 {
		return errPower
	}
	f.steps--
	return nil
}

func (f *fragile) write(path string, data []byte) error {
	if err := f.step(); err != nil {
		return err
	}
	inode, known := f.names[path]
	if !known {
		inode = len(f.data)
		f.data = append(f.data, "")
		f.names[path] = inode
		f.pending = append(f.pending, func(m *image) { m.names[path] = inode })
	}
	text := string(data)
	f.data[inode] = text
	f.pending = append(f.pending,
		func(m *image) { m.data[inode] = "" },
		func(m *image) { m.data[inode] = text[:len(text)/2] },
		func(m *image) { m.data[inode] = text })
	return nil
}

func (f *fragile) sync(path string) error {
	if err := f.step(); err != nil {
		return err
	}
	f.stable.data[f.names[path]] = f.data[f.names[path]]
	return nil
}

// syncAll is a sync of every file.
func (f *fragile) syncAll() error {
	if err := f.step(); err != nil {
		return err
	}
	for inode, data := range f.data {
		f.stable.data[inode] = data
	}
	return nil
}

func (f *fragile) rename(from, to string) error {
	if err := f.step(); err != nil {
		return err
	}
	inode := f.names[from]
	f.names[to] = inode
	delete(f.names, from)
	f.pending = append(f.pending, func(m *image) { m.names[to] = inode; delete(m.names, from) })
	return nil
}

func (f *fragile) unlink(path string) error {
	if err := f.step(); err != nil {
		return err
	}
	delete(f.names, path)
	f.pending = append(f.pending, func(m *image) { delete(m.names, path) })
	return nil
}

func (f *fragile) mkdir(path string) error {
	if _, there := f.names[path]; there {
		return os.ErrExist
	}
	if _, there := f.names[filepath.Dir(path)]; !there {
		return os.ErrNotExist
	}
	f.names[path] = -1
	return nil
}

func (f *fragile) syncDir(path string) error {
	f.syncs = append(f.syncs, path)
	return f.syncNames()
}

func (f *fragile) syncNames() error {
	if err := f.step(); err != nil {
		return err
	}
	f.stable.names, f.pending = maps.Clone(f.names), nil
	return nil
}

// images calls see with everything that may be found after a loss of power.
func (f *fragile) images(see func(contents string, there bool)) {
	for subset := range 1 << len(f.pending) {
		m := &image{maps.Clone(f.stable.names), maps.Clone(f.stable.data)}
		for i, reach := range f.pending {
			if subset>>i&1 != 0 {
				reach(m)
			}
		}
		maps.Copy(m.data, f.synced()) // nothing undoes a sync
		inode, there := m.names["f"]
		see(m.data[inode], there)
	}
}

// synced are the inodes whose data are stable as they are now.
func (f *fragile) synced() map[int]string {
	out := map[int]string{}
	for inode, text := range f.stable.data {
		if f.data[inode] == text {
			out[inode] = text
		}
	}
	return out
}

func newFragile() *fragile {
	f := &fragile{names: map[string]int{}}
	f.stable.names, f.stable.data = map[string]int{}, map[int]string{}
	return f
}

// TestPowerLoss: at every step of three replacements, and whatever of the steps
// so far has reached the medium, there is the old contents or the new one.
func TestPowerLoss(t *testing.T) {
	contents := []string{"", "the first one", "second", "and the third"}
	for steps := range 13 {
		f := newFragile()
		f.steps = steps
		acknowledged := 0
		for i := 1; i < len(contents); i++ {
			if err := replace(f, map[string][]byte{"f": []byte(contents[i])}, false); err != nil {
				break
			}
			acknowledged = i
		}
		next := min(acknowledged+1, len(contents)-1)
		seen := map[string]bool{}
		f.images(func(found string, there bool) {
			if !there && acknowledged == 0 || there && (found == contents[acknowledged] && acknowledged > 0 || found == contents[next]) {
				seen[found] = true
				return
			}
			t.Errorf("after %d steps: found %q (%v), expected %q or %q", steps, found, there, contents[acknowledged], contents[next])
		})
		if acknowledged == len(contents)-1 && fmt.Sprint(seen) != fmt.Sprint(map[string]bool{contents[3]: true}) {
			t.Errorf("after the end: found %v", seen)
		}
	}
}

// TestReplace on a real file system, over what a crash has left.
func TestReplace(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	path := filepath.Join(dir, "f")
	for range 2 {
		if err := MakeDir(dir); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(path+".new", []byte("left by a crash, and longer"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"one", "two", ""} {
		if err := Replace(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("%q, %v, expected %q", got, err, text)
		}
	}
	if err := Replace(filepath.Join(dir, "missing", "f"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// TestMakeDir: whatever was made, or was there, has a stable name.
func TestMakeDir(t *testing.T) {
	f := newFragile()
	f.names["/"] = -1
	f.steps = -1
	for _, want := range []string{"[/ /a /a/b]", "[/a/b]"} {
		f.syncs = nil
		if err := makeDir(f, "/a/b/c"); err != nil || fmt.Sprint(f.syncs) != want {
			t.Errorf("found %v, %v, expected %v", f.syncs, err, want)
		}
	}
	dir := t.TempDir()
	deep := filepath.Join(dir, "a", "b")
	for range 2 {
		if err := MakeDir(deep); err != nil {
			t.Fatal(err)
		}
	}
	writeTo := filepath.Join(deep, "f")
	if err := Replace(writeTo, nil); err != nil {
		t.Fatal(err)
	}
	if err := MakeDir(filepath.Join(writeTo, "d")); err == nil {
		t.Error("a directory below a file was made")
	}
	for _, gone := range []string{writeTo, writeTo, filepath.Join(dir, "missing", "f")} {
		if err := Remove(gone); err != nil {
			t.Fatal(err)
		}
	}
}
