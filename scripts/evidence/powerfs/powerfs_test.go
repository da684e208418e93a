package powerfs_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"lunar/scripts/evidence/powerfs"
)

// boot shows a disk and returns where.
func boot(t *testing.T, d *powerfs.Disk) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Skipf("no FUSE here: %v", err)
	}
	dir := t.TempDir()
	unmount, err := powerfs.Mount(d, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unmount(); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// write makes a file; what of it is synced is said by letters: d the data, n the name.
func write(t *testing.T, path, data, sync string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
	for letter, what := range map[string]string{"d": path, "n": filepath.Dir(path)} {
		if strings.Contains(sync, letter) {
			f, err := os.Open(what)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(f.Sync(), f.Close()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// contents is "-" for a file that is not there.
func contents(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return "-"
	}
	return string(text)
}

// TestWhatWasSyncedIsLeft: of data and names is left what was synced, each by itself.
func TestWhatWasSyncedIsLeft(t *testing.T) {
	d := powerfs.NewDisk()
	dir := boot(t, d)
	write(t, dir+"/both", "old", "dn")
	write(t, dir+"/both", "newer", "")
	write(t, dir+"/replaced", "old", "dn")
	write(t, dir+"/other", "new", "d")
	if err := os.Rename(dir+"/other", dir+"/replaced"); err != nil {
		t.Fatal(err)
	}
	write(t, dir+"/data", "lost", "d")
	d = d.Cut(powerfs.All, nil)
	if err := os.WriteFile(dir+"/late", nil, 0o600); !errors.Is(err, syscall.EIO) {
		t.Errorf("without power: found %v, expected EIO", err)
	}
	dir = boot(t, d)
	for name, want := range map[string]string{"both": "old", "replaced": "old", "other": "-", "data": "-"} {
		if found := contents(dir + "/" + name); found != want {
			t.Errorf("%s: found %q, expected %q", name, found, want)
		}
	}
	write(t, dir+"/name", "lost", "n")
	if found := contents(boot(t, d.Cut(powerfs.All, nil)) + "/name"); found != "" {
		t.Errorf("name without data: found %q, expected an empty file", found)
	}
}

// TestAnySectorsOfAWriteAreLeft: any sectors of a write are left, and any part of the names.
func TestAnySectorsOfAWriteAreLeft(t *testing.T) {
	const old, new = "o", "n"
	seen := map[string]bool{}
	for seed := range uint64(40) {
		d := powerfs.NewDisk()
		dir := boot(t, d)
		write(t, dir+"/file", strings.Repeat(old, 2*powerfs.Sector), "dn")
		f, err := os.OpenFile(dir+"/file", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(strings.Repeat(new, 2*powerfs.Sector)); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		text := contents(boot(t, d.Cut(powerfs.Some, rand.New(rand.NewPCG(seed, 0)))) + "/file")
		for at, sector := range []string{text[:powerfs.Sector], text[powerfs.Sector:]} {
			if sector != strings.Repeat(sector[:1], powerfs.Sector) {
				t.Fatalf("sector %d is torn: %q", at, sector)
			}
		}
		seen[text[:1]+text[powerfs.Sector:powerfs.Sector+1]] = true
	}
	for _, want := range []string{old + old, old + new, new + old, new + new} {
		if !seen[want] {
			t.Errorf("%q never happened", want)
		}
	}
}

// TestLimit: the power goes before a change, not in its middle.
func TestLimit(t *testing.T) {
	d := powerfs.NewDisk()
	dir := boot(t, d)
	write(t, dir+"/file", "x", "dn")
	d.Limit(0)
	if d.Down() {
		t.Error("the power is off before anything was changed")
	}
	if err := os.WriteFile(dir+"/other", nil, 0o600); !errors.Is(err, syscall.EIO) || !d.Down() {
		t.Errorf("found %v, power off: %v, expected EIO and true", err, d.Down())
	}
}
