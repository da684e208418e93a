package durable

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestHalvesGo: of a replacement that fails, nothing is left that takes space.
func TestHalvesGo(t *testing.T) {
	dir := t.TempDir()
	var files []Contents
	for i := range 8 {
		files = append(files, Contents{Path: filepath.Join(dir, fmt.Sprint(i)), Data: []byte("new")})
	}
	if err := os.Mkdir(files[5].Path+Half, 0o700); err != nil { // no file can be made there
		t.Fatal(err)
	}
	for _, b := range []*Batch{nil, {}} {
		if b.Replace(files) == nil {
			t.Error("no error")
		}
		left, err := os.ReadDir(dir)
		if err != nil || len(left) != 1 {
			t.Errorf("found %v (%v), expected the directory alone", left, err)
		}
	}
}
