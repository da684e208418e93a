package writers

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"lunar/scripts/evidence/generations"
)

// TestWriters: what the writers have written is found again, and what is not as it was
// written is told of. A file stands for the disk and for its path.
func TestWriters(t *testing.T) {
	dir := t.TempDir()
	device := filepath.Join(dir, "disk")
	if err := os.WriteFile(device, make([]byte, 2*each*generations.BlockBytes), 0o600); err != nil {
		t.Fatal(err)
	}
	if d, err := openDisk(device, os.O_RDWR); err != nil {
		t.Skip("the file system of temporary files has no O_DIRECT: ", err)
	} else {
		d.file.Close()
	}
	w, err := New(device, 2, dir, 1, []string{device})
	if err != nil {
		t.Fatal(err)
	}
	var none Nothing
	var f Figures
	for f.Disk.Reads == 0 || f.Files.Reads == 0 || f.Paths.Reads == 0 {
		time.Sleep(pause)
		w.Read(none, &f)
	}
	var l Ledger
	w.Halt(none, &l)
	var blocks int
	for what, err := range map[string]error{"the disk": w.CompareDisk(device, &blocks), "the files": w.CompareFiles(dir, &blocks)} {
		if err != nil || blocks == 0 {
			t.Errorf("%s: found %d blocks: %v", what, blocks, err)
		}
	}
	if w.Read(none, &f); len(f.Wrong) > 0 {
		t.Errorf("found %q", f.Wrong)
	}
	if err := os.WriteFile(device, make([]byte, 2*each*generations.BlockBytes), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := w.CompareDisk(device, &blocks); err == nil {
		t.Error("an empty disk was taken for what had been written")
	}
}
