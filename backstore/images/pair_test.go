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
	p := images.Pair(d.Images, second, func(path string) string { return path + ".pi" }, func(string) error { return nil })
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

// TestPairRestored: wherever a server is killed amid a rollback of two files, both are of before
// it or both of the image once they are opened, what they held is an image of both if it was to
// be one, and nothing half-made is left.
func TestPairRestored(t *testing.T) {
	dir := backstoretest.Reflink(t, "xfs")
	for _, test := range []struct {
		steps  string // P: place, F: somebody opens both, U: undo, S: settle
		placed bool
	}{
		{"", false}, {"P", true}, {"PF", true}, {"PU", false}, {"PFU", false}, {"PFUF", false},
		{"PUS", false}, {"PFUS", false}, {"PFUFS", false}, {"PFS", true}, {"PS", true}, {"S", false},
	} {
		for _, keep := range []string{"kept", ""} {
			p := newDuo(t, filepath.Join(dir, test.steps+"-"+keep))
			c, err := p.Restore(t.Context(), "one", 8*mib, keep, "")
			if err != nil {
				t.Fatal(err)
			}
			for _, step := range test.steps {
				do := map[rune]func() error{'P': c.Place, 'F': p.follow, 'U': c.Undo, 'S': c.Settle}[step]
				if err := do(); err != nil {
					t.Fatalf("%s: %v", test.steps, err)
				}
			}
			images.Kill(c)
			p.after(test.steps, test.placed, keep)
		}
	}
}

// duo is two files, with an image named one that has other contents.
type duo struct {
	*disk
	images.Images
	proofs string
}

func newDuo(t *testing.T, dir string) *duo {
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	d := newDisk(t, dir)
	p := &duo{disk: d, proofs: d.path + ".pi"}
	p.write("of one")
	p.find(d.Images)
	draft, err := p.Images.Begin("one")
	if err == nil {
		err = errors.Join(draft.Take(t.Context(), nil, ""), draft.Keep(time.Now()))
	}
	if err != nil {
		t.Fatal(err)
	}
	d.fill(2)
	p.write("of two")
	return p
}

func (p *duo) write(text string) {
	p.Helper()
	if err := os.WriteFile(p.proofs, []byte(text), 0o600); err != nil {
		p.Fatal(err)
	}
}

func (p *duo) follow() error { return images.Follow(p.path, p.proofs) }

// find has the images of both files, of which the first is open.
func (p *duo) find(first images.Images) {
	p.Helper()
	second, err := images.Of(p.proofs, -1)
	if err != nil {
		p.Fatal(err)
	}
	p.Images = images.Pair(first, second, func(path string) string { return path + ".pi" }, func(string) error { return nil })
}

// after has the next process open both, and judges them.
func (p *duo) after(steps string, placed bool, keep string) {
	p.Helper()
	if err := p.follow(); err != nil {
		p.Fatal(err)
	}
	p.find(p.opened().Images)
	if err := p.Tidy(func(string) bool { return false }); err != nil {
		p.Errorf("%s: %v", steps, err)
	}
	text, want := map[bool]string{true: "of one", false: "of two"}, []string{"one"}
	p.disk.has(p.path, map[bool]byte{true: 1, false: 2}[placed])
	if got, err := os.ReadFile(p.proofs); err != nil || string(got) != text[placed] {
		p.Errorf("%s: found %q, %v, expected %q", steps, got, err, text[placed])
	}
	if placed && keep != "" {
		want = []string{"kept", "one"}
		p.disk.has(filepath.Join(p.path+images.Suffix, "kept"), 2)
		if got, err := os.ReadFile(filepath.Join(p.proofs+images.Suffix, "kept")); err != nil || string(got) != "of two" {
			p.Errorf("%s: found %q, %v", steps, got, err)
		}
	}
	for _, path := range []string{p.path, p.proofs} {
		if left := p.names(path + images.Suffix); !slices.Equal(left, want) {
			p.Errorf("%s: found %v beside %s, expected %v", steps, left, path, want)
		}
	}
}
