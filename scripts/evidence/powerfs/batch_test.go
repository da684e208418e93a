package powerfs_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"lunar/internal/durable"
	"lunar/scripts/evidence/powerfs"
)

// TestBatchOnFUSE: FUSE does not tell its server of a sync of the file system, so that many
// files are made stable one by one there.
func TestBatchOnFUSE(t *testing.T) {
	const many, text = 8, "stable"
	d := powerfs.NewDisk()
	dir := boot(t, d)
	var b durable.Batch
	var replaced []durable.Contents
	for i := range many {
		f, err := os.Create(filepath.Join(dir, fmt.Sprint("made", i)))
		if err != nil {
			t.Fatal(err)
		}
		err = b.Made(int(f.Fd()), f.Name())
		_, written := f.WriteString(text) // a caller may do so before Flush
		if err := errors.Join(err, written, f.Close()); err != nil {
			t.Fatal(err)
		}
		replaced = append(replaced, durable.Contents{Path: filepath.Join(dir, fmt.Sprint("replaced", i)), Data: []byte(text)})
	}
	if err := errors.Join(b.Flush(), b.Replace(replaced)); err != nil {
		t.Fatal(err)
	}
	dir = boot(t, d.Cut(powerfs.All, nil))
	for i := range many {
		for _, name := range []string{"made", "replaced"} {
			if found := contents(filepath.Join(dir, fmt.Sprint(name, i))); found != text {
				t.Errorf("%s%d: found %q, expected %q", name, i, found, text)
			}
		}
	}
}
