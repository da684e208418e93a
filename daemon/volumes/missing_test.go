package volumes

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"lunar/conf"
	"lunar/internal/durable"
)

// TestWhatWasWrittenIsNotTakenBack: a store that has data, or that somebody has locked,
// keeps all that belongs to it; without either nothing is left.
func TestWhatWasWrittenIsNotTakenBack(t *testing.T) {
	for text, stays := range map[string]bool{"data": true, "\x00\x00": false, "locked": true} {
		dir := t.TempDir()
		at := func(name string) string { return filepath.Join(dir, name) }
		v := &conf.Volume{Name: "v", Path: at("v"), ProtectionFile: at("v.pi"), Encryption: &conf.VolumeEncryption{HeaderFile: at("v.header")}}
		a := &Set{Config: Config{StateDir: dir}}
		restore := a.MissingOf(v)
		for _, path := range []string{v.Path, v.ProtectionFile, v.Encryption.HeaderFile} {
			writeText(t, path, text)
		}
		if err := a.shieldNote(v).Save(&shieldNote{}); err != nil {
			t.Fatal(err)
		}
		if text == "locked" {
			writeText(t, v.Path, "\x00")
			f, err := os.Open(v.Path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
				t.Fatal(err)
			}
		}
		if err := restore(); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{v.Path, v.ProtectionFile, v.Encryption.HeaderFile, a.shieldNote(v).Path(), string(a.shieldNote(v).Mark())} {
			if durable.Absent(path) == stays {
				t.Errorf("%q: %s: expected that it stays: %t", text, path, stays)
			}
		}
	}
}
