package control

import (
	"os"
	"path/filepath"
	"testing"
)

// TestFind: the packaged server is asked by whoever names no other and has none.
func TestFind(t *testing.T) {
	dir, empty := t.TempDir(), t.TempDir()
	packaged := filepath.Join(t.TempDir(), "packaged")
	for _, path := range []string{SocketIn(dir, ""), packaged} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		dir       string
		byDefault bool
		flag      string
		packaged  string
		want      string
	}{
		{dir, true, "", packaged, SocketIn(dir, "")},
		{empty, true, "", packaged, packaged},
		{empty, true, "/flag", packaged, "/flag"},
		{empty, false, "", packaged, SocketIn(empty, "")},
		{empty, true, "", filepath.Join(empty, "none"), SocketIn(empty, "")},
	} {
		if got := find(test.dir, test.byDefault, test.flag, test.packaged); got != test.want {
			t.Errorf("%+v: found %s", test, got)
		}
	}
}
