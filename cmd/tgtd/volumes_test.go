package main

import (
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
			var out buffer
			open := func(c backstore.FileConfig) (backstore.Store, error) {
				if c.Direct || test.missing {
					return nil, noDirect
				}
				return backstore.NewNull(1<<20, 512)
			}
			v := &conf.Volume{Name: "v", MayBuffer: !test.insists}
			_, err := openFile(v, backstore.FileConfig{Direct: true, Logger: slog.New(slog.NewTextHandler(&out, nil))}, open)
			if errors.Is(err, noDirect) != test.refused || err != nil && !test.refused {
				t.Errorf("found %v", err)
			}
			if (out.String() == "") != (test.log == "") || !strings.Contains(out.String(), test.log) {
				t.Errorf("found log %s", &out)
			}
		})
	}
}

// TestVolumeID: the identity in the cache is that of the bytes and of what
// initiators know, whatever the name and however the path is written.
func TestVolumeID(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	writeFile(t, file, "")
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	id := func(v conf.Volume) uint64 { return volumeID(&v, "server") }
	first := id(conf.Volume{Name: "a", Path: file})
	for _, v := range []conf.Volume{
		{Name: "a", Path: dir + "/./file"},
		{Name: "b", Path: file, Serial: serialOf(&conf.Volume{Name: "a"}, "server")},
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

func TestSameStore(t *testing.T) {
	dir := t.TempDir()
	file, link, other := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "other")
	writeFile(t, file, "")
	writeFile(t, other, "")
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
		if got := sameStore(test.a, test.b); got != test.want {
			t.Errorf("%q and %q: found %v", test.a, test.b, got)
		}
	}
}
