package medium

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lunar/backstore"
	"lunar/conf"
)

// TestOpenFile: direct I/O gives way where nobody insists on it and where its
// absence is what keeps the file from being opened.
func TestOpenFile(t *testing.T) {
	noDirect := errors.New("the file system has no direct I/O")
	for name, test := range map[string]struct {
		insists, missing bool
		refused          bool
		log              string
	}{
		"gives way": {log: "the file system has no direct I/O"},
		"insists":   {insists: true, refused: true},
		"missing":   {missing: true, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			open := func(c backstore.FileConfig) (backstore.Store, error) {
				if c.Direct || test.missing {
					return nil, noDirect
				}
				return backstore.NewNull(1<<20, 512)
			}
			v := &conf.Volume{Name: "v", MayBuffer: !test.insists}
			_, err := OpenFile(v, backstore.FileConfig{Direct: true, Logger: slog.New(slog.NewTextHandler(&out, nil))}, open)
			if errors.Is(err, noDirect) != test.refused || err != nil && !test.refused {
				t.Errorf("found %v", err)
			}
			if (out.String() == "") != (test.log == "") || !strings.Contains(out.String(), test.log) {
				t.Errorf("found log %s", &out)
			}
		})
	}
}

func TestSameStore(t *testing.T) {
	dir := t.TempDir()
	file, link, other := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "other")
	if err := os.WriteFile(file, []byte(""), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(other, []byte(""), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{file, file, true}, {file, link, true}, {file, other, false}, {"", "", false}, {file, "", false},
		{dir + "/missing", dir + "/missing", true}, {dir + "/missing", file, false},
	} {
		if got := Same(test.a, test.b); got != test.want {
			t.Errorf("%q and %q: found %v", test.a, test.b, got)
		}
	}
}
