package protect

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"lunar/backstore"
)

// TestIdentity: a sidecar file has one for good, those of earlier versions get one,
// no bit of the header page flips unnoticed, and what is not the volume's stays as it is.
func TestIdentity(t *testing.T) {
	const size = 1 << 20
	dir := t.TempDir()
	path := filepath.Join(dir, "tuples")
	open := func(id ID) (ID, error) {
		data, err := backstore.OpenFile(backstore.FileConfig{Path: filepath.Join(dir, "data"), Size: size})
		if err != nil {
			t.Fatal(err)
		}
		s, err := Open(Config{Data: data, Path: path, Type: Type1, Block: 512, ID: id})
		if err != nil {
			data.Close()
			return ID{}, err
		}
		return s.ID(), s.Close()
	}
	id, err := open(ID{})
	if err != nil || id == (ID{}) {
		t.Fatalf("found %v, %v, expected an identity", id, err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, there := range map[string][]byte{"none": nil, "an empty one": {}, "zeroes": make([]byte, len(whole)), "another's": whole} {
		os.Remove(path)
		if there != nil {
			if err := os.WriteFile(path, there, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want := id
		want[0] ^= 1
		if got, err := open(want); !errors.Is(err, ErrNotIts) {
			t.Errorf("%s: found %v, %v, expected a refusal", name, got, err)
		}
		if now, err := os.ReadFile(path); (err != nil) != (there == nil) || !bytes.Equal(now, there) {
			t.Errorf("%s: it was changed (%v)", name, err)
		}
	}
	for bit := range (idOffset + idSize) * 8 {
		if at := bit / 8; at >= headerSize && at < idOffset {
			continue // nothing is there
		}
		flipped := append([]byte(nil), whole...)
		flipped[bit/8] ^= 1 << (bit % 8)
		if err := os.WriteFile(path, flipped, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := open(id); err == nil {
			t.Errorf("bit %d: found %v", bit, got)
		}
	}
	clear(whole[idOffset : idOffset+idSize]) // as an earlier version leaves it
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	fresh, err := open(ID{})
	if err != nil || fresh == (ID{}) || fresh == id {
		t.Errorf("found %v, %v, expected a fresh identity", fresh, err)
	}
	if again, err := open(fresh); err != nil || again != fresh {
		t.Errorf("found %v, %v, expected %v", again, err, fresh)
	}
}
