package windows

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/crypt"
	"lunar/backstore/protect"
)

// TestLayersConform: what lies above two stores as one is a store like any other.
func TestLayersConform(t *testing.T) {
	mirrored := func(t *testing.T) backstore.Store {
		return openMirror(t, mirrorOf(mem(t, backstoretest.Size), mem(t, backstoretest.Size), mem(t, MapSize)))
	}
	exceeding := func(t *testing.T) backstore.Store {
		c := excessOf(mem(t, backstoretest.Size), mem(t, ExcessLeast))
		c.Writes = 0 // so many as it takes
		return openExcess(t, c)
	}
	for name, open := range map[string]func(*testing.T) (backstore.Store, error){
		"enciphered mirror": func(t *testing.T) (backstore.Store, error) { return enciphered(t, mirrored(t)) },
		"enciphered excess": func(t *testing.T) (backstore.Store, error) { return enciphered(t, exceeding(t)) },
		"protected mirror": func(t *testing.T) (backstore.Store, error) {
			return protect.Open(protect.Config{Data: mirrored(t), Path: filepath.Join(t.TempDir(), "pi"), Type: 1, Block: 512})
		},
	} {
		t.Run(name, func(t *testing.T) {
			backstoretest.Run(t, backstoretest.Subject{Open: func(t *testing.T) backstore.Store {
				s, err := open(t)
				if err != nil {
					t.Fatal(err)
				}
				return s
			}})
		})
	}
}

// enciphered is a store above data, with a key of its own.
func enciphered(t *testing.T, data backstore.Store) (backstore.Store, error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "key"), []byte(strings.Repeat("9f", 32)), 0o600); err != nil {
		return nil, err
	}
	key, err := crypt.ReadKey(filepath.Join(dir, "key"))
	if err != nil {
		return nil, err
	}
	header := filepath.Join(dir, "header")
	if err := crypt.Create(header, key, 512); err != nil {
		return nil, err
	}
	return crypt.Open(crypt.Config{Data: data, Path: header, Key: key, Block: 512})
}
