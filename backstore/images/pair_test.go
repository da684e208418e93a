package images_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lunar/backstore/backstoretest"
	"lunar/backstore/images"
)

// TestPair: an image of two files is there when both have it, wherever a server was killed, and
// a clone is of both, or of neither.
func TestPair(t *testing.T) {
	dir := backstoretest.Reflink(t, "xfs")
	d := newDisk(t, dir)
	proofs := d.path + ".pi"
	if err := os.WriteFile(proofs, []byte("of one"), 0o600); err != nil {
		t.Fatal(err)
	}
	second, err := images.Of(proofs, -1)
	if err != nil {
		t.Fatal(err)
	}
	p := images.Pair(d.Images, second, func(path string) string { return path + ".pi" })
	begin := func(name string) images.Draft {
		t.Helper()
		draft, err := p.Begin(name)
		if err == nil {
			err = errors.Join(draft.Draw(t.Context(), nil), draft.Draw(t.Context(), []images.Range{}), draft.Take(t.Context(), []images.Range{}, ""))
		}
		if err != nil {
			t.Fatal(err)
		}
		return draft
	}
	one := begin("one")
	if err := errors.Join(one.Keep(time.Now()), one.Discard(), begin("lost").Discard()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(proofs, []byte("of two"), 0o600); err != nil {
		t.Fatal(err)
	}
	has := func(path, want string) {
		t.Helper()
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s: found %q, %v, expected %q", path, got, err, want)
		}
	}
	has(filepath.Join(proofs+images.Suffix, "one"), "of one")
	clone := filepath.Join(dir, "clone")
	c, err := p.Clone(t.Context(), "one", clone)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Place(); err != nil {
		t.Fatal(err)
	}
	d.has(clone, 1)
	has(clone+".pi", "of one")
	if err := c.Undo(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{clone, clone + ".pi"} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("found %s left", path)
		}
	}
	if err := os.WriteFile(clone+".pi", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Clone(t.Context(), "one", clone); err == nil || !strings.Contains(err.Error(), "where nothing is") {
		t.Errorf("found %v, expected that nothing is replaced", err)
	}
	if _, err := p.Restore(t.Context(), "one", 8*mib, "", ""); !errors.Is(err, images.ErrUnsupported) {
		t.Errorf("found %v", err)
	}

	alone, err := second.Begin("alone") // killed between the names
	if err == nil {
		err = errors.Join(alone.Take(t.Context(), nil, ""), alone.Keep(time.Now()))
	}
	if err != nil {
		t.Fatal(err)
	}
	d.take("data", time.Now()) // made before there was protection information
	all, err := p.List()
	if err != nil || len(all) != 1 || all[0].Name != "one" {
		t.Errorf("found %+v, %v, expected the one that both have", all, err)
	}
	if err := p.Tidy(func(string) bool { return false }); err != nil {
		t.Error(err)
	}
	if left := d.names(proofs + images.Suffix); !slices.Equal(left, []string{"one"}) {
		t.Errorf("found %v left", left)
	}
	if s, err := p.Space(all[0]); err != nil || s.Shared+s.Owned < 2*mib {
		t.Errorf("found %+v, %v", s, err)
	}
	if err := p.Remove("one"); err != nil {
		t.Error(err)
	}
	if left := append(d.names(proofs+images.Suffix), d.names(d.path+images.Suffix)...); !slices.Equal(left, []string{"data"}) {
		t.Errorf("found %v left", left)
	}
	if err := p.Remove("one"); !errors.Is(err, images.ErrNone) {
		t.Errorf("found %v, expected that there is none", err)
	}
}
