package rbd_test

import (
	"errors"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/rbd"
	"lunar/internal/eventually"
)

// claimed opens the image for a claim, by the instance that the server has.
func claimed(t *testing.T, c rbd.Config, epoch uint64, superseded ...string) *rbd.Store {
	t.Helper()
	address, leave, err := c.Clients.Stay(c.Account, superseded, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = leave() })
	c.Epoch, c.Instance, c.Superseded = epoch, address, superseded
	store, err := rbd.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// TestStampOfClaim: what was cached for a claim is not believed for a later one of the same
// process, between which somebody else had the image.
func TestStampOfClaim(t *testing.T) {
	s := newSite(t, nil)
	a, b := s.server("a"), s.server("b")
	first := claimed(t, a, 3)
	was, err := first.Stamp()
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := claimed(t, b, 4).Close(); err != nil {
		t.Fatal(err)
	}
	lost := claimed(t, a, 5) // and nobody waits for it any more
	again := claimed(t, a, 6, lost.Address())
	if now, ok := again.Opened(); !ok || now == was || now == (backstore.Stamp{}) {
		t.Errorf("found stamp %v of claim 5, and %v of claim 3, expected others", now, was)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
	_ = lost.Close() // it is fenced
}

// stay has somebody use a server's instance until the test ends, and returns its address.
func stay(t *testing.T, c rbd.Config) (address string) {
	t.Helper()
	address, leave, err := c.Clients.Stay(c.Account, nil, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = leave() })
	return address
}

// TestFenceByFenced: an instance that the cluster refuses is not used again to fence others.
func TestFenceByFenced(t *testing.T) {
	s := newSite(t, nil)
	c := s.server("a")
	address := stay(t, c)
	s.Block(address)
	if c.Clients.Fence(c.Account, []string{"192.0.2.9:0/1"}, time.Minute) == nil {
		t.Error("a fenced instance has fenced another one")
	}
	if err := c.Clients.Fence(c.Account, []string{"192.0.2.9:0/1"}, time.Minute); err != nil {
		t.Error(err)
	}
}

// TestAskedByFenced: that an instance is refused is known also of one that has nothing open.
func TestAskedByFenced(t *testing.T) {
	s := newSite(t, nil)
	c := s.server("a")
	address := stay(t, c)
	if c.Clients.Refused(address) {
		t.Error("an instance that nobody has fenced counts as refused")
	}
	c.Clients.Answers(t.Context(), c.Account, c.Image)
	s.Block(address)
	eventually.Holds(t, "the server knows that its instance is refused", func() bool { return c.Clients.Refused(address) })
	if next := stay(t, c); next == address || c.Clients.Refused(next) {
		t.Errorf("found instance %q after %q", next, address)
	}
}

// TestClaimOfClone: a clone has the notes of what it was made of, and nobody had it open: the
// claims of its cluster begin with the first one. What it is open for counts from then on.
func TestClaimOfClone(t *testing.T) {
	s := newSite(t, nil)
	a := s.server("a")
	parent := claimed(t, a, 9)
	t.Cleanup(func() { _ = parent.Close() })
	of, err := parent.Images()
	if err != nil {
		t.Fatal(err)
	}
	d, err := of.Begin("one")
	if err == nil {
		err = errors.Join(d.Take(t.Context(), nil, ""), d.Keep(time.Now()))
	}
	if err != nil {
		t.Fatal(err)
	}
	c, err := of.Clone(t.Context(), "one", "rbd/clone")
	if err == nil {
		err = errors.Join(c.Place(), c.Settle())
	}
	if err != nil {
		t.Fatal(err)
	}
	a.Image.Image = "clone"
	for epoch := uint64(1); epoch <= 2; epoch++ {
		if err := claimed(t, a, epoch).Close(); err != nil {
			t.Error(err)
		}
	}
	a.Epoch, a.Instance = 1, stay(t, a)
	if store, err := rbd.Open(a); err == nil {
		_ = store.Close()
		t.Error("an image was opened for an earlier claim than its last one")
	}
}
