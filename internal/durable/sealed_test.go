package durable

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"
)

// TestEveryBit: a sealed file of which a bit has flipped, or an end is missing, is
// refused or does not pass for a sealed one.
func TestEveryBit(t *testing.T) {
	payload := "{\"type\":1}\n"
	whole := Seal("test", []byte(payload))
	if got, sealed, err := Unseal("test", whole); string(got) != payload || !sealed || err != nil {
		t.Fatalf("found %q, %v, %v", got, sealed, err)
	}
	for i := range len(whole) * 8 {
		flipped := append([]byte(nil), whole...)
		flipped[i/8] ^= 1 << (i % 8)
		got, sealed, err := Unseal("test", flipped)
		if err == nil && sealed {
			t.Errorf("bit %d: found %q", i, got)
		}
		if err == nil && Strict(got, new(any)) == nil {
			t.Errorf("bit %d: %q passes for an old file", i, got)
		}
	}
	for n := range whole {
		got, sealed, err := Unseal("test", whole[:n])
		if err == nil && (sealed || Strict(got, new(any)) == nil) {
			t.Errorf("%d bytes: found %q", n, got)
		}
	}
	for _, other := range [][]byte{append(whole, 'x'), append(whole, whole...)} {
		if _, _, err := Unseal("test", other); !errors.Is(err, ErrDamaged) {
			t.Errorf("%q: %v", other, err)
		}
	}
	if _, _, err := Unseal("other", whole); !errors.Is(err, ErrDamaged) {
		t.Errorf("another kind: %v", err)
	}
}

// TestStrict: only what Marshal would write is read, of this version's keys or fewer.
func TestStrict(t *testing.T) {
	type value struct {
		Type  int                `json:"type,omitempty"`
		Names []int              `json:"names"`
		Key   uint64             `json:"key,string"`
		More  struct{ A, B int } `json:"more"`
	}
	for text, ok := range map[string]bool{
		`{"type":1,"names":[1],"key":"2"}`:                      true,
		" {\n\t\"type\": 1, \"names\": [1],\n\"key\": \"2\"}\n": true,
		`{"names":[],"key":"2"}`:                                true,
		`{"pype":1,"names":[1],"key":"2"}`:                      false,
		`{"Type":1,"names":[1],"key":"2"}`:                      false,
		`{"type":1,"type":1,"names":[1],"key":"2"}`:             false,
		`{"names":[1]}`:                                         true, // by a version without keys
		`{"names":null,"key":"2","names":[]}`:                   false,
		`{"names":[1],"key":"02"}`:                              false,
		`{"names":[1],"key":"2"} {}`:                            false,
		`{"key":"2","names":[1],"key":"2"}`:                     false,
		`{"names":[1],"key":2}`:                                 false,
		`{"names":{},"key":"2"}`:                                false,
		`null`:                                                  false,
		` { }`:                                                  false,
		"\v{}":                                                  false,
		`{"names":[1],"more":{}}`:                               false,
		`{"names":[1],"more":{"B":1}}`:                          true,
		``:                                                      false,
	} {
		if err := Strict([]byte(text), new(value)); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestSealedFiles: they are read as they were written, and files of before are known
// as such.
func TestSealedFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if _, err := LoadJSON(path, "test", new(int)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	for _, write := range []struct {
		do  func() error
		old bool
	}{
		{func() error { return Replace(path, []byte("7\n")) }, true},
		{func() error { return SaveJSON(path, "test", 7) }, false},
	} {
		if err := write.do(); err != nil {
			t.Fatal(err)
		}
		var got int
		if old, err := LoadJSON(path, "test", &got); got != 7 || old != write.old || err != nil {
			t.Errorf("found %d, %v, %v", got, old, err)
		}
	}
}
