package rbdtest

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lunar/backstore/backstoretest"
	"lunar/backstore/rbd"
)

// testSnapshots: a snapshot has what was written before, neither it nor a clone of it changes
// with the image, and a clone outlives it.
func testSnapshots(t *testing.T, s Subject) {
	name := s.Create(t, Size)
	u := s.open(t, name, false)
	if err := u.image.Acquire(); err != nil {
		t.Fatal(err)
	}
	data := backstoretest.Pattern(page, 12)
	u.write(0, data)
	if err := errors.Join(u.image.Snap("one"), u.image.Snap("two")); err != nil {
		t.Fatal(err)
	}
	if err := u.image.Snap("one"); !errors.Is(err, unix.EEXIST) {
		t.Errorf("found %v, expected EEXIST", err)
	}
	u.write(0, backstoretest.Pattern(page, 13))
	all := must[[]rbd.Snapshot](t)(u.image.Snapshots())
	if len(all) != 2 || all[0].Name != "one" || all[1].Name != "two" || all[0].Size != Size || time.Since(all[0].At).Abs() > time.Minute {
		t.Fatalf("found %+v", all)
	}
	child := name
	child.Image += "-clone"
	if err := u.image.Clone("one", child); err != nil {
		t.Fatal(err)
	}
	if err := u.image.Clone("two", child); !errors.Is(err, unix.EEXIST) {
		t.Errorf("found %v, expected EEXIST", err)
	}
	c := s.open(t, child, false)
	c.expect(0, data)
	c.write(page, data)
	if err := errors.Join(u.image.Unsnap("one"), u.image.Unsnap("two")); err != nil {
		t.Fatal(err)
	}
	if err := u.image.Unsnap("one"); !errors.Is(err, unix.ENOENT) {
		t.Errorf("found %v, expected ENOENT", err)
	}
	c.expect(0, data)
	u.expect(page, make([]byte, page))
	if err := u.client.Remove(child); !errors.Is(err, unix.EBUSY) {
		t.Errorf("found %v, expected EBUSY while it is open", err)
	}
	if err := c.image.Close(); err != nil {
		t.Fatal(err)
	}
	if err := u.client.Remove(child); err != nil {
		t.Error(err)
	}
	c.image = must[rbd.Image](t)(c.client.Open(name, true)) // for the end of the test
}

// testNames: an image may be renamed while it is open and has its lock, is the same one
// afterwards, and only its own name is taken from it.
func testNames(t *testing.T, s Subject) {
	name, taken := s.Create(t, Size), s.Create(t, Size)
	u := s.open(t, name, false)
	if err := u.image.Acquire(); err != nil {
		t.Fatal(err)
	}
	id := must[rbd.Geometry](t)(u.image.Geometry()).ID
	other := name
	other.Image += ".other"
	if err := u.client.Rename(name, taken); !errors.Is(err, unix.EEXIST) {
		t.Errorf("found %v, expected EEXIST", err)
	}
	if err := u.client.Rename(name, other); err != nil {
		t.Fatal(err)
	}
	u.write(0, backstoretest.Pattern(page, 1))
	if !u.image.Owned() {
		t.Error("found the lock lost")
	}
	if i, err := u.client.Open(name, true); !errors.Is(err, unix.ENOENT) {
		t.Errorf("found %v, %v, expected ENOENT by the name of before", i, err)
	}
	if listed := must[string](t)(u.client.Listed(name, id)); listed != other.Image {
		t.Errorf("found it listed as %q, expected %q", listed, other.Image)
	}
	if listed := must[string](t)(u.client.Listed(name, "none")); listed != "" {
		t.Errorf("found %q listed", listed)
	}
	if err := errors.Join(u.client.Unname(other, "none"), u.client.Unname(name, id)); err != nil {
		t.Error(err)
	}
	s.open(t, other, false).expect(0, backstoretest.Pattern(page, 1))
	if err := errors.Join(u.client.Rename(other, name), u.client.Rename(name, other), u.client.Rename(other, name)); err != nil {
		t.Fatal(err)
	}
	if err := u.client.Unname(name, id); err != nil {
		t.Error(err)
	}
	if i, err := u.client.Open(name, true); !errors.Is(err, unix.ENOENT) {
		t.Errorf("found %v, %v, expected that the name is gone", i, err)
	}
}

// testChildren: a clone is like its parent and has its notes, an image that clones depend on is
// not removed but can be emptied, and snapshots that were removed are not told.
func testChildren(t *testing.T, s Subject) {
	name := s.Create(t, Size)
	u := s.open(t, name, false)
	data := backstoretest.Pattern(page, 1)
	if err := errors.Join(u.image.Acquire(), u.image.Annotate("of", "the parent")); err != nil {
		t.Fatal(err)
	}
	u.write(0, data)
	child := name
	child.Image += ".child"
	if err := errors.Join(u.image.Snap("one"), u.image.Clone("one", child)); err != nil {
		t.Fatal(err)
	}
	c := s.open(t, child, false)
	was, now := must[rbd.Geometry](t)(u.image.Geometry()), must[rbd.Geometry](t)(c.image.Geometry())
	now.ID = was.ID
	if was != now {
		t.Errorf("found %+v, expected %+v", now, was)
	}
	if note := must[string](t)(c.image.Note("of")); note != "the parent" {
		t.Errorf("found note %q", note)
	}
	if err := errors.Join(u.image.Resize(0), u.image.Unsnap("one")); err != nil {
		t.Fatal(err)
	}
	if all := must[[]rbd.Snapshot](t)(u.image.Snapshots()); len(all) > 0 {
		t.Errorf("found %+v", all)
	}
	if err := u.image.Close(); err != nil {
		t.Fatal(err)
	}
	if err := u.client.Remove(name); !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EBUSY) {
		t.Errorf("found %v, expected that it is not removed", err)
	}
	c.expect(0, data)
	if err := c.image.Close(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.client.Remove(child), u.client.Remove(name)); err != nil {
		t.Error(err)
	}
	again := s.Create(t, Size) // for the end of the test
	u.image, c.image = must[rbd.Image](t)(u.client.Open(again, true)), must[rbd.Image](t)(c.client.Open(again, true))
}
