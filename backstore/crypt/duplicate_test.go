package crypt

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDuplicate: a second header has the master key of the first and another identity, and is
// made of that key alone, and where nothing is.
func TestDuplicate(t *testing.T) {
	dir := t.TempDir()
	first, second := filepath.Join(dir, "header"), filepath.Join(dir, "second")
	s := encrypted(t, dir, fileIn(t, dir, false, 512), 512)
	mark, id := s.Mark(), s.ID()
	if err := Duplicate(first, second, key(2), 512, mark); err == nil || !strings.Contains(err.Error(), "another one") {
		t.Errorf("found %v, expected that another key file opens nothing", err)
	}
	if err := Duplicate(first, second, key(1), 512, mark); err != nil {
		t.Fatal(err)
	}
	if err := Duplicate(first, second, key(1), 512, mark); err == nil || !strings.Contains(err.Error(), "where nothing is") {
		t.Errorf("found %v, expected that no header is replaced", err)
	}
	if err := s.rekey(); err != nil {
		t.Fatal(err)
	}
	if s.Mark() == mark {
		t.Error("found the same mark after an erase")
	}
	if err := Duplicate(first, second+"2", key(1), 512, mark); !errors.Is(err, ErrOtherKey) {
		t.Errorf("found %v, expected that the master key is another one", err)
	}
	if _, err := os.Stat(second + "2"); err == nil {
		t.Error("found a header")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(Config{Data: fileIn(t, dir, false, 512), Path: second, Key: key(1), Block: 512})
	if err != nil {
		t.Fatal(err)
	}
	if again.Mark() != mark || again.ID() == id {
		t.Errorf("found mark %s of %s, identity %v", again.Mark(), mark, again.ID())
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}
