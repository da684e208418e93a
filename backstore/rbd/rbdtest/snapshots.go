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
