package rbd_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"lunar/backstore/images"
	"lunar/backstore/rbd"
	"lunar/internal/eventually"
)

// kept are the snapshots of an image that a server has open.
func (s *site) kept(t *testing.T, c rbd.Config) images.Images {
	t.Helper()
	of, err := open(t, c).Images()
	if err != nil {
		t.Fatal(err)
	}
	return of
}

// TestSnapshots: snapshots are those of the cluster, made while nobody writes, and gone unless
// they are kept; clones are images that can be undone.
func TestSnapshots(t *testing.T) {
	s := newSite(t, nil)
	of := s.kept(t, s.server("a"))
	take := func(name string) images.Draft {
		t.Helper()
		d, err := of.Begin(name)
		if err == nil {
			err = errors.Join(d.Draw(t.Context(), nil), d.Take(t.Context(), nil, ""))
		}
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	if err := errors.Join(take("one").Keep(time.Now()), take("lost").Discard()); err != nil {
		t.Fatal(err)
	}
	all, err := of.List()
	if err != nil || len(all) != 1 || all[0].Name != "one" || all[0].At.After(time.Now()) {
		t.Fatalf("found %+v, %v, expected one, of no moment that has not come yet", all, err)
	}
	if _, err := of.Begin("one"); !errors.Is(err, images.ErrExists) {
		t.Errorf("found %v, expected that there is one", err)
	}
	c, err := of.Clone(t.Context(), "one", "rbd/clone")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Place(); err != nil || s.Noted(image)["lunar-cloning"] != "rbd/clone" {
		t.Fatalf("found %v, notes %v", err, s.Noted(image))
	}
	again, err := of.Clone(t.Context(), "one", "rbd/clone")
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Place(); err == nil || !strings.Contains(err.Error(), "expected a name that nothing has") {
		t.Errorf("found %v", err)
	}
	if err := errors.Join(again.Undo(), c.Undo(), c.Place(), c.Settle()); err != nil {
		t.Errorf("found %v, expected that the name is free again", err)
	}
	if err := of.Remove("one"); err != nil {
		t.Error(err)
	}
	if err := of.Remove("one"); !errors.Is(err, images.ErrNone) {
		t.Errorf("found %v, expected that there is none", err)
	}
	if n := s.Noted(image)["lunar-cloning"]; n != "" {
		t.Errorf("found note %q", n)
	}
}

// TestSnapshotTidied: of a server that was killed while it cloned the next one names the image,
// which may be anybody's, and leaves it alone.
func TestSnapshotTidied(t *testing.T) {
	s := newSite(t, nil)
	s.Create("rbd/clone", 1<<20)
	s.With(image, true, nil, map[string]string{"lunar-cloning": "rbd/clone"})
	of := s.kept(t, s.server("a"))
	if err := of.Tidy(func(string) bool { return false }); err == nil || !strings.Contains(err.Error(), "rbd rm rbd/clone") {
		t.Errorf("found %v, expected the image", err)
	}
	if err := of.Tidy(func(string) bool { return false }); err != nil || s.Owner("rbd/clone") != "" {
		t.Errorf("found %v, expected that it is told once", err)
	}
}

// TestSnapshotTooLate: a snapshot that a cluster makes after the deadline is removed.
func TestSnapshotTooLate(t *testing.T) {
	s := newSite(t, nil)
	of := s.kept(t, s.server("a"))
	d, err := of.Begin("late")
	if err != nil {
		t.Fatal(err)
	}
	s.Away(true)
	late, end := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer end()
	err = d.Take(late, nil, "")
	s.Away(false)
	if err == nil {
		t.Error("found a snapshot of a cluster that does not answer")
	}
	eventually.Holds(t, "the one that has come is gone", func() bool {
		all, err := of.List()
		return err == nil && s.Snapped() == 1 && len(all) == 0
	})
	if err := d.Discard(); err != nil {
		t.Error(err)
	}
}
