package daemon

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"lunar/internal/initiator"
)

// TestMovedStoreKeepsItsReservations: a file that was renamed while the server was
// stopped, and back, is the same volume with the same fence; another file is not.
func TestMovedStoreKeepsItsReservations(t *testing.T) {
	s := newStoreSite(t, "{type: file, path: first, size: 1MiB}")
	first, second := filepath.Join(s.dir, "first"), filepath.Join(s.dir, "second")
	keys := func(then uint64) (found []uint64) {
		running := serve(t, s.args()...)
		r := &registrant{Conn: dial(t, running.portal, initiator.Options{Target: "iqn.2026-11.example.lunar:v"})}
		settle(t, r.Conn, 0)
		found = r.keys(t)
		if err := r.register(then); err != nil {
			t.Error(err)
		}
		r.Close()
		running.stop()
		return found
	}
	move := func(from, to string) {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
		s.configure(t, "{type: file, path: "+filepath.Base(to)+", size: 1MiB}")
	}
	keys(5)
	move(first, second)
	if found := keys(6); !slices.Equal(found, []uint64{5}) {
		t.Errorf("found keys %d after the file was renamed, expected 5", found)
	}
	move(second, first)
	if found := keys(7); !slices.Equal(found, []uint64{6}) {
		t.Errorf("found keys %d after it was renamed back, expected 6", found)
	}
	writeFile(t, filepath.Join(s.dir, "third"), string(make([]byte, 1<<20)))
	s.configure(t, "{type: file, path: third, size: 1MiB}")
	if found := keys(8); len(found) != 0 {
		t.Errorf("found keys %d with another file, expected none", found)
	}
}
