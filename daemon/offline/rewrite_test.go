package offline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lunar/conf"
	"lunar/daemon/state"
	"lunar/internal/bulk"
)

const mib = 1 << 20

// site is a volume with a configuration and a state directory.
type site struct {
	*testing.T
	dir  string
	data []byte // clear
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{T: t, dir: t.TempDir(), data: make([]byte, 9*mib+4096)}
	random := rand.NewChaCha8([32]byte{7})
	for _, at := range []int{0, mib, 3 * mib, 8 * mib, 9 * mib} { // between them nothing
		_, _ = random.Read(s.data[at:min(at+mib, len(s.data))]) // never fails
	}
	s.write("disk.img", s.data)
	s.write("key", bytes.Repeat([]byte("0123456789abcdef"), 4))
	s.encryption(true)
	return s
}

func (s *site) path(name string) string { return filepath.Join(s.dir, name) }

func (s *site) write(name string, b []byte) {
	s.Helper()
	if err := os.WriteFile(s.path(name), b, 0o600); err != nil {
		s.Fatal(err)
	}
}

func (s *site) read(name string) []byte {
	s.Helper()
	b, err := os.ReadFile(s.path(name))
	if err != nil {
		s.Fatal(err)
	}
	return b
}

// encryption has the configuration say that the volume has it.
func (s *site) encryption(is bool) {
	s.Helper()
	key := ""
	if is {
		key = fmt.Sprintf(", encryption: {key-file: %s}", s.path("key"))
	}
	s.write("tgtd.yaml", fmt.Appendf(nil, "portal-groups: {a: {listen: [\"127.0.0.1:0\"]}}\nvolumes: {disk: {type: file, path: %s%s}}\n", s.path("disk.img"), key))
}

func (s *site) volume() Unencrypted {
	return Unencrypted{File: s.path("tgtd.yaml"), Volume: "disk", StateDir: s.dir}
}

func (s *site) encipher(ctx context.Context) (Rewritten, error) {
	return s.volume().Encipher(ctx, &bulk.Progress{})
}

func (s *site) decipher(ctx context.Context) (Rewritten, error) {
	s.encryption(false)
	return s.volume().Decipher(ctx, s.path("key"), "", &bulk.Progress{})
}

func (s *site) there(names ...string) {
	s.Helper()
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		s.Fatal(err)
	}
	for _, e := range entries {
		if name := e.Name(); strings.HasPrefix(name, "disk.img") {
			found := false
			for _, n := range names {
				found = found || n == name
			}
			if !found {
				s.Errorf("found %s, expected only %v", name, names)
			}
		}
	}
}

// TestRewriting: data are encrypted and back, equal, and what they were is kept.
func TestRewriting(t *testing.T) {
	s := newSite(t)
	out, err := s.encipher(t.Context())
	if err != nil || out.Stored != 5 || out.Kept != 0 {
		t.Fatalf("found %+v, %v", out, err)
	}
	s.there("disk.img", "disk.img.header", "disk.img.before")
	if cipher := s.read("disk.img"); bytes.Contains(cipher, s.data[:4096]) || len(cipher) != len(s.data) || !bytes.Equal(s.read("disk.img.before"), s.data) {
		t.Error("what is there is not cipher text beside what it was")
	}
	if _, err := s.encipher(t.Context()); err == nil || !strings.Contains(err.Error(), "encrypted already") {
		t.Errorf("the second time: found %v", err)
	}
	if _, err := s.decipher(t.Context()); err == nil || !strings.Contains(err.Error(), "remove it") {
		t.Errorf("with what an earlier one has left: found %v", err)
	}
	if err := os.Remove(s.path("disk.img.before")); err != nil {
		t.Fatal(err)
	}
	if out, err = s.decipher(t.Context()); err != nil || !bytes.Equal(s.read("disk.img"), s.data) {
		t.Fatalf("found %+v, %v, or other data than before", out, err)
	}
	s.there("disk.img", "disk.img.before", "disk.img.header.before")
}

// TestRewritingBrokenOff: whatever step it is broken off after, the same call goes on, and
// what is at the volume's path is the one or the other whole.
func TestRewritingBrokenOff(t *testing.T) {
	s := newSite(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.encipher(ended); err == nil {
		t.Fatal("it was not broken off")
	}
	if !bytes.Equal(s.read("disk.img"), s.data) {
		t.Fatal("the volume is not what it was")
	}
	s.there("disk.img", "disk.img.rewriting", "disk.img.rewriting.journal", "disk.img.header.rewriting")
	s.broken(func(r *rewriting) error { return r.copy(t.Context(), &bulk.Progress{}) })
	if out, err := s.encipher(t.Context()); err != nil || out.Kept != 5 || out.Stored != 0 {
		t.Fatalf("found %+v, %v, expected the 5 blocks of before", out, err)
	}
	// The file has its name, and the header has not: as after a kill between both.
	journal := s.read("disk.img")
	if err := os.Rename(s.path("disk.img.header"), s.path("disk.img.header.rewriting")); err != nil {
		t.Fatal(err)
	}
	for _, refused := range []string{"an earlier rewriting", "may be the header"} {
		if _, err := s.encipher(t.Context()); err == nil || !strings.Contains(err.Error(), refused) {
			t.Errorf("without a journal: found %v, expected that cipher text is not enciphered again", err)
		}
		if err := os.Rename(s.path("disk.img.before"), s.path("elsewhere")); err != nil && refused != "may be the header" {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(s.read("disk.img"), journal) {
		t.Error("the volume was altered")
	}
	j, err := bulk.OpenJournal(s.path("disk.img.rewriting.journal"), int64(len(s.data)))
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Finish(&bulk.Received{}, s.path("disk.img")); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.encipher(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.there("disk.img", "disk.img.header")
	if err := os.Link(s.path("disk.img"), s.path("disk.img.before")); err != nil { // as before a kill, too
		t.Fatal(err)
	}
	if _, err := s.decipher(t.Context()); err != nil || !bytes.Equal(s.read("disk.img"), s.data) {
		t.Fatalf("found %v, or other data than before", err)
	}
}

// broken does a part of it, as before a kill.
func (s *site) broken(part func(*rewriting) error) {
	s.Helper()
	_, err := s.volume().rewrite(s.Context(), &bulk.Progress{}, func(r *rewriting) error {
		e := r.v.Encryption
		r.made, r.Header, r.Key = true, e.HeaderFile, e.KeyFile
		if err := r.prepare(); err != nil {
			return err
		}
		if err := part(r); err != nil {
			s.Fatal(err)
		}
		return context.Canceled
	})
	if err == nil {
		s.Fatal("it was not broken off")
	}
}

// TestRewritingRefused: a volume that somebody uses, or that is not like that, stays as it is.
func TestRewritingRefused(t *testing.T) {
	s := newSite(t)
	held, err := state.Take(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.encipher(t.Context()); err == nil {
		t.Error("a volume of a server that runs was rewritten")
	}
	if err := held.Release(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.decipher(t.Context()); err == nil || !strings.Contains(err.Error(), "no header file") {
		t.Errorf("in clear: found %v", err)
	}
	if _, err := s.encipher(t.Context()); err == nil || !strings.Contains(err.Error(), "no encryption in the configuration") {
		t.Errorf("without encryption in the configuration: found %v", err)
	}
	note := s.path("excess/disk-0123456789abcdef.json")
	if err := errors.Join(os.MkdirAll(filepath.Dir(note), 0o700), os.WriteFile(note, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.encipher(t.Context()); err == nil || !strings.Contains(err.Error(), "writes in excess has data of it") {
		t.Errorf("with data on a device that the configuration does not name any more: found %v", err)
	}
	if err := os.Remove(note); err != nil {
		t.Fatal(err)
	}
	r := rewriting{dir: s.dir, v: &conf.Volume{Name: "disk", Path: s.path("disk.img")}}
	for _, path := range []string{"", "other.img", "disk.img"} {
		if path != "" {
			if err := state.RecordOf(s.dir, "disk").Save(&state.Record{Path: s.path(path)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.had(); path == "disk.img" != (err == nil) {
			t.Errorf("with a state directory by default that has a record of %q: found %v", path, err)
		}
	}
	if !bytes.Equal(s.read("disk.img"), s.data) {
		t.Error("the volume was altered")
	}
	s.there("disk.img")
}
