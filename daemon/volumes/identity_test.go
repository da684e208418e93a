package volumes

import (
	"os"
	"path/filepath"
	"testing"

	"lunar/conf"
	"lunar/daemon/state"
)

func TestServerIdentity(t *testing.T) {
	dir := t.TempDir()
	first, err := state.ServerIdentity(dir)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := state.ServerIdentity(dir); err != nil || again != first {
		t.Errorf("found %s, %v, expected %s", again, err, first)
	}
	if other, err := state.ServerIdentity(t.TempDir()); err != nil || other == first {
		t.Errorf("two servers are both %s, %v", other, err)
	}
	v, w := &conf.Volume{Name: "v"}, &conf.Volume{Name: "w"}
	if SerialOf(v, first) == SerialOf(w, first) {
		t.Error("two volumes have one serial number")
	}
	if got := SerialOf(&conf.Volume{Name: "v", Serial: "S1"}, first); got != "S1" {
		t.Errorf("found %s, expected the configured serial number", got)
	}
	writeText(t, filepath.Join(dir, "identity"), "damaged")
	if _, err := state.ServerIdentity(dir); err == nil {
		t.Error("a damaged identity was accepted")
	}
}

// TestVolumeID: the identity in the cache is that of the bytes and of what
// initiators know, whatever the name and however the path is written.
func TestVolumeID(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	writeText(t, file, "")
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	id := func(v conf.Volume) uint64 { return volumeID(&v, "server") }
	first := id(conf.Volume{Name: "a", Path: file})
	for _, v := range []conf.Volume{
		{Name: "a", Path: dir + "/./file"},
		{Name: "b", Path: file, Serial: SerialOf(&conf.Volume{Name: "a"}, "server")},
	} {
		if id(v) != first {
			t.Errorf("%+v: found another identity", v)
		}
	}
	for _, v := range []conf.Volume{{Name: "b", Path: file}, {Name: "a", Path: link}, {Name: "a", Path: file + "2"}, {Name: "a", Path: file, Serial: "s"}} {
		if id(v) == first {
			t.Errorf("%+v: found the same identity", v)
		}
	}
}

func writeText(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
