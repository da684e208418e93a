package daemon

import (
	"crypto/sha256"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lunar/daemon/state"
)

// asTheyWere notes what is in all files below directories, and returns a check that
// nothing of it has changed, and that no file came or went. The lock has a process id.
func asTheyWere(t *testing.T, dirs ...string) (check func()) {
	t.Helper()
	before := sumsBelow(t, dirs)
	return func() {
		t.Helper()
		after := sumsBelow(t, dirs)
		for path, sum := range before {
			if found, there := after[path]; !there || found != sum {
				t.Errorf("a start that was refused has changed or removed %s", path)
			}
			delete(after, path)
		}
		for path := range after {
			t.Errorf("a start that was refused has left %s", path)
		}
	}
}

func sumsBelow(t *testing.T, dirs []string) map[string][sha256.Size]byte {
	t.Helper()
	sums := map[string][sha256.Size]byte{}
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() || e.Name() == state.ClaimName {
				return err
			}
			text, err := os.ReadFile(path)
			sums[path] = sha256.Sum256(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return sums
}

// TestRefusedStartChangesNothing: when one volume is refused, unwritten data of another
// stay where they are, its file is not grown, and the segment not sealed.
func TestRefusedStartChangesNothing(t *testing.T) {
	w := newWriteBack(t)
	w.crashed(t)
	key := filepath.Join(w.dir, "key")
	writeFile(t, key, "no key")
	grown := strings.Replace(backVolume, "16MiB", "64MiB", 1)
	for volume, want := range map[string]string{
		"{type: file, path: other.img, size: 1MiB, encryption: {key-file: " + key + "}}": key,
		"{type: file, path: no/such/other.img}":                                          "no/such",
		"{type: file, path: ./back.img}":                                                 "path",
	} {
		w.configure(t, grown+", other: "+volume)
		expectRefusal(t, w, want)
	}
	w.configure(t, grown)
	s := serve(t, w.args()...)
	readAll(t, w.dial(t, s.portal), 0)
}
