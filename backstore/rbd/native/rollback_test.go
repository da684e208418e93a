package native

import (
	"bytes"
	"errors"
	"log/slog"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/rbd"
)

// TestRollback: an image of a cluster is rolled back while it is open, and is found as it was
// then if its new name has been broken off where librbd has given it and not taken the old one.
func TestRollback(t *testing.T) {
	library, account := cluster(t)
	c := rbd.Config{
		Clients: rbd.NewClients(func() (rbd.Library, error) { return library, nil }, slog.New(slog.DiscardHandler)), Account: account,
		Image: create(t, account, backstoretest.Size), Server: "test", Logger: slog.New(slog.DiscardHandler),
	}
	open := func() *rbd.Store {
		t.Helper()
		s, err := rbd.Open(c)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	// with does something with the image's contents, and closes the loop that it was done on.
	with := func(s backstore.Store, do func(*backstoretest.Client)) {
		t.Run("", func(t *testing.T) { do(backstoretest.NewClient(t, s, backstoretest.NewLoop(t, false))) })
	}
	was, now := backstoretest.Pattern(4096, 1), backstoretest.Pattern(4096, 2)
	s := open()
	with(s, func(c *backstoretest.Client) { c.Write(t, 0, was) })
	of, err := s.Images()
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
	with(s, func(c *backstoretest.Client) { c.Write(t, 0, now) })
	back, err := of.Restore(t.Context(), "one", backstoretest.Size, "before", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := back.Place(); err != nil {
		t.Fatal(err)
	}
	placed := time.Since(began)
	twin(t, account, c.Image)
	s = open()
	t.Logf("placed in %v, open after %v", placed, time.Since(began))
	if err := back.Settle(); err != nil {
		t.Error(err)
	}
	with(s, func(c *backstoretest.Client) {
		if got := c.Read(t, 0, 4096); !bytes.Equal(got, was) {
			t.Errorf("found %.20x, expected what the snapshot has", got)
		}
	})
	of, err = s.Images()
	if err != nil {
		t.Fatal(err)
	}
	all, err := of.List()
	if err != nil || len(all) != 2 {
		t.Errorf("found %+v, %v, expected both snapshots", all, err)
	}
	if out, err := exec.Command("rbd", "--conf", account.Config, "--log-to-stderr=false", "flatten", "--no-progress", c.Image.String()).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	for _, name := range []string{"one", "before"} {
		if err := of.Remove(name); err != nil {
			t.Error(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	out, err := exec.Command("rbd", "--conf", account.Config, "--log-to-stderr=false", "ls", "rbd").Output()
	if err != nil || bytes.Contains(out, []byte(c.Image.Image+".lunar")) {
		t.Errorf("found images %s, %v, expected none of before", out, err)
	}
}

// twin has an image opened by the name that its clone had, too.
func twin(t *testing.T, a rbd.Account, name rbd.Name) {
	t.Helper()
	id := filepath.Join(t.TempDir(), "id")
	for _, args := range [][]string{{"get", "rbd_id." + name.Image, id}, {"put", "rbd_id." + name.Image + ".lunar-new", id}} {
		if out, err := exec.Command("rados", append([]string{"--conf", a.Config, "--log-to-stderr=false", "-p", name.Pool}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("rados %v: %v: %s", args, err, out)
		}
	}
}
