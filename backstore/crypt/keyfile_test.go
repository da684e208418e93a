package crypt

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func TestReadKey(t *testing.T) {
	raw := make([]byte, keySize)
	for i := range raw {
		raw[i] = byte(i*7 + 128)
	}
	for name, v := range map[string]struct {
		text string
		mode os.FileMode
		ok   bool
	}{
		"raw":          {string(raw), 0o600, true},
		"hex":          {hex.EncodeToString(raw) + "\n", 0o400, true},
		"base64":       {" " + base64.StdEncoding.EncodeToString(raw) + "\r\n", 0o600, true},
		"with a list":  {string(raw), 0o440, true},
		"short":        {string(raw[:31]), 0o600, false},
		"long":         {string(raw) + "x", 0o600, false},
		"very long":    {string(bytes.Repeat(raw, 100)), 0o600, false},
		"empty":        {"", 0o600, false},
		"zeroes":       {string(make([]byte, keySize)), 0o600, false},
		"zero digits":  {hex.EncodeToString(make([]byte, keySize)), 0o600, false},
		"typed":        {"correct horse battery staple 32\n", 0o600, false},
		"for everyone": {string(raw), 0o644, false},
		"group writes": {string(raw), 0o660, false},
	} {
		path := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(path, []byte(v.text), v.mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, v.mode); err != nil {
			t.Fatal(err)
		}
		k, err := ReadKey(path)
		if (err == nil) != v.ok {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && !bytes.Equal(k.bytes[:], raw) {
			t.Errorf("%s: another key", name)
		}
		if err != nil && (bytes.Contains([]byte(err.Error()), raw[:8]) || bytes.Contains([]byte(err.Error()), []byte("horse"))) {
			t.Errorf("%s: the error tells the key: %v", name, err)
		}
	}
	if _, err := ReadKey(t.TempDir()); err == nil {
		t.Error("a directory is a key file")
	}
}

func TestKeysDoNotPrint(t *testing.T) {
	k := newKey()
	copy(k.bytes[:], []byte{0xab, 0xcd})
	for _, s := range []string{fmt.Sprint(k), fmt.Sprintf("%v %+v %#v %x %s", k, k, k, k, k)} {
		if bytes.Contains([]byte(s), []byte("171")) || bytes.Contains([]byte(s), []byte("ab")) {
			t.Errorf("found %q", s)
		}
	}
}
