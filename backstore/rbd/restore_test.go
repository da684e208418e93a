package rbd_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lunar/backstore/backstoretest"
	"lunar/backstore/images"
	"lunar/backstore/rbd"
)

// rollback is an image with a snapshot named one, of other data than it has now.
type rollback struct {
	*testing.T
	*site
	c        rbd.Config
	store    *rbd.Store
	was, now []byte
}

func newRollback(t *testing.T) *rollback {
	r := &rollback{T: t, site: newSite(t, nil), was: backstoretest.Pattern(page, 1), now: backstoretest.Pattern(page, 2)}
	r.c = r.server("a")
	r.open()
	client(t, r.store).Write(t, 0, r.was)
	r.snap("one")
	client(t, r.store).Write(t, 0, r.now)
	return r
}

// open opens the image as the next volume does.
func (r *rollback) open() images.Images {
	r.Helper()
	store, err := rbd.Open(r.c)
	if err != nil {
		r.Fatal(err)
	}
	r.store = store
	r.Cleanup(func() { _ = store.Close() })
	return r.images()
}

func (r *rollback) images() images.Images {
	r.Helper()
	of, err := r.store.Images()
	if err != nil {
		r.Fatal(err)
	}
	return of
}

func (r *rollback) snap(name string) {
	r.Helper()
	d, err := r.images().Begin(name)
	if err == nil {
		err = errors.Join(d.Take(r.Context(), nil, ""), d.Keep(time.Now()))
	}
	if err != nil {
		r.Fatal(err)
	}
}

func (r *rollback) holds() []byte {
	r.Helper()
	return client(r.T, r.store).Read(r.T, 0, page)
}

func (r *rollback) names() (all []string) {
	r.Helper()
	list, err := r.images().List()
	if err != nil {
		r.Fatal(err)
	}
	for _, i := range list {
		all = append(all, i.Name)
	}
	slices.Sort(all)
	return all
}

// back rolls back as a volume does, and has it undone if the volume cannot be opened.
func (r *rollback) back(snapshot, keep string, opens bool) error {
	copied, err := r.images().Restore(r.Context(), snapshot, backstoretest.Size, keep, "")
	if err != nil {
		return err
	}
	_ = r.store.Close()
	err = copied.Place()
	if err == nil && opens {
		var store *rbd.Store
		if store, err = rbd.Open(r.c); err == nil {
			r.store = store
			r.Cleanup(func() { _ = store.Close() })
			return copied.Settle()
		}
	}
	return errors.Join(errors.New("undone"), err, copied.Undo(), copied.Settle())
}

// TestRollback: an image has what a snapshot has, what it held before is a snapshot, all that
// there were are there still and can be rolled back to, and images that nobody needs go.
func TestRollback(t *testing.T) {
	r := newRollback(t)
	if err := r.back("one", "before", true); err != nil {
		t.Fatal(err)
	}
	if got := r.holds(); !bytes.Equal(got, r.was) {
		t.Errorf("found %.20x, expected what the snapshot has", got)
	}
	if got := r.names(); !slices.Equal(got, []string{"before", "one"}) {
		t.Errorf("found snapshots %v", got)
	}
	if _, err := r.images().Begin("one"); !errors.Is(err, images.ErrExists) {
		t.Errorf("found %v, expected that an earlier image has one of this name", err)
	}
	if _, err := r.images().Restore(t.Context(), "one", backstoretest.Size, "before", ""); !errors.Is(err, images.ErrExists) {
		t.Errorf("found %v, expected that none is replaced", err)
	}
	if _, err := r.images().Restore(t.Context(), "one", page, "", ""); err == nil || !strings.Contains(err.Error(), "as large first") {
		t.Errorf("found %v, expected that nothing is cut", err)
	}
	c, err := r.images().Clone(t.Context(), "one", "rbd/clone")
	if err == nil {
		err = errors.Join(c.Place(), c.Settle())
	}
	if err != nil {
		t.Errorf("clone of a snapshot of before: %v", err)
	}
	r.snap("two")
	for i, to := range []string{"before", "one", "two"} {
		if err := r.back(to, fmt.Sprint("kept", i), true); err != nil {
			t.Fatal(err)
		}
		if got := r.holds(); !bytes.Equal(got, [][]byte{r.now, r.was, r.was}[i]) {
			t.Errorf("%s: found %.20x", to, got)
		}
	}
	if got := r.names(); !slices.Equal(got, []string{"before", "kept0", "kept1", "kept2", "one", "two"}) {
		t.Errorf("found snapshots %v", got)
	}
	if err := r.Remover("rbd/clone"); err != nil {
		t.Fatal(err)
	}
	for _, name := range r.names() {
		if err := r.images().Remove(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := r.images().Tidy(nil); err != nil {
		t.Error(err)
	}
	if left := r.Names(); len(left) != 3 { // the one that it is a clone of, and the one of that
		t.Errorf("found %v", left)
	}
}

// Remover removes an image as an administrator does.
func (r *rollback) Remover(name string) error {
	library, err := r.Library()
	if err != nil {
		return err
	}
	c, err := library.Connect(rbd.Account{})
	if err != nil {
		return err
	}
	n, err := rbd.ParseName(name)
	return errors.Join(err, c.Remove(n), c.Close())
}

// TestRollbackDiscards: what nobody is to have any more is given back.
func TestRollbackDiscards(t *testing.T) {
	r := newRollback(t)
	if err := r.back("one", "", true); err != nil {
		t.Fatal(err)
	}
	if err := r.back("one", "", true); err != nil { // by then an image without snapshots was in the place
		t.Fatal(err)
	}
	if got := r.names(); !slices.Equal(got, []string{"one"}) {
		t.Errorf("found snapshots %v", got)
	}
	if err := r.images().Tidy(nil); err != nil {
		t.Error(err)
	}
	if left := r.Names(); len(left) != 2 {
		t.Errorf("found images %v, expected that the one between is gone", left)
	}
	for name := range r.Names() {
		if size := r.Size(name); name != image && size != 0 {
			t.Errorf("found %d bytes in %s, which nobody reads", size, name)
		}
	}
}

// TestRollbackKilled: at whichever call a server is killed, the next one finds what the image
// held or what the snapshot has, the one as a snapshot if it has the other, nothing half-made,
// and goes on.
func TestRollbackKilled(t *testing.T) {
	for _, opens := range []bool{true, false} {
		for n, old, fresh := 1, 0, 0; ; n++ {
			r := newRollback(t)
			r.Kill(n)
			err := r.back("one", "before", opens)
			whole := err == nil || !errors.Is(err, unix.ESHUTDOWN)
			r.Kill(-1)
			if r.after(n, whole, opens) {
				fresh++
			} else {
				old++
			}
			if !whole {
				continue
			}
			if n < 30 || old == 0 || fresh == 0 {
				t.Errorf("found %d kills, %d that left the old content and %d the new one", n, old, fresh)
			}
			break
		}
	}
}

// after has the next server open the image, judges it, and reports whether it has the new
// content.
func (r *rollback) after(n int, whole, opens bool) (fresh bool) {
	r.Helper()
	r.c = r.server("a")
	if whole {
		_ = r.store.Close()
	}
	r.open()
	if err := r.images().Tidy(nil); err != nil {
		r.Errorf("call %d: %v", n, err)
	}
	got, want := r.holds(), []string{"one"}
	switch {
	case bytes.Equal(got, r.was):
		want = []string{"before", "one"}
	case !bytes.Equal(got, r.now):
		r.Fatalf("call %d: found %.20x, neither the old content nor the new one", n, got)
	}
	if whole && opens != bytes.Equal(got, r.was) {
		r.Errorf("call %d: found another content than the answer says", n)
	}
	if found := r.names(); !slices.Equal(found, want) {
		r.Errorf("call %d: found snapshots %v, expected %v", n, found, want)
	}
	for name, listed := range r.Names() {
		if name != listed || strings.HasSuffix(name, ".lunar-new") {
			r.Errorf("call %d: found image %s listed as %s", n, name, listed)
		}
	}
	if note := r.Noted(image)["lunar-rollback"]; note != "" {
		r.Errorf("call %d: found note %q", n, note)
	}
	if err := r.back("one", "again", true); err != nil || !bytes.Equal(r.holds(), r.was) {
		r.Errorf("call %d: found %v, expected that it can be rolled back afterwards", n, err)
	}
	return bytes.Equal(got, r.was)
}

// TestRollbackElsewhere: another server does not take an image amid a rollback, and a node of a
// cluster that has it by a later claim does.
func TestRollbackElsewhere(t *testing.T) {
	r := newRollback(t)
	r.Kill(0)
	copied, err := r.images().Restore(t.Context(), "one", backstoretest.Size, "before", "")
	if err == nil {
		err = errors.Join(r.store.Close(), copied.Place())
	}
	if err != nil {
		t.Fatal(err)
	}
	dead := r.store.Address()
	r.Block(dead)
	r.c = r.server("b")
	r.c.Superseded = []string{dead}
	r.open()
	if got := r.holds(); !bytes.Equal(got, r.was) {
		t.Errorf("found %.20x", got)
	}
	_ = copied.Settle()
}
