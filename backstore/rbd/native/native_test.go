package native

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/rbd"
	"lunar/backstore/rbd/rbdtest"
)

// TestWithout: a binary without RBD, and a machine without the library, say what is missing.
func TestWithout(t *testing.T) {
	library, err := Open()
	if err == nil && Built {
		t.Skip("librbd is installed here")
	}
	want := "package librbd1"
	if !Built {
		want = "built without RBD (tag rbd"
	}
	if library != nil || err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("found %v, %v, expected %q", library, err, want)
	}
}

// cluster is that of the directory in the environment.
func cluster(t testing.TB) (rbd.Library, rbd.Account) {
	t.Helper()
	dir := os.Getenv("LUNAR_CEPH")
	if dir == "" {
		t.Skip("LUNAR_CEPH names no directory of a Ceph cluster, which scripts/lab/ceph/run.sh makes")
	}
	library, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	return library, rbd.Account{Config: filepath.Join(dir, "ceph.conf"), User: "admin", Keyring: filepath.Join(dir, "keyring")}
}

var images int

// create makes an image with Ceph's own program, which is gone when the test ends.
func create(t testing.TB, a rbd.Account, size int64) rbd.Name {
	t.Helper()
	images++
	name := rbd.Name{Pool: "rbd", Image: fmt.Sprintf("test-%d-%d", os.Getpid(), images)}
	command := func(args ...string) error {
		out, err := exec.Command("rbd", append([]string{"--conf", a.Config, "--log-to-stderr=false"}, args...)...).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("rbd %s: %w: %s", args, err, out)
		}
		return err
	}
	if err := command("create", "--size", fmt.Sprint(size, "B"), name.String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := command("rm", "--no-progress", name.String()); err != nil {
			t.Log(err) // a watch of a fenced instance lasts for some time
		}
	})
	return name
}

func TestLibrary(t *testing.T) {
	library, account := cluster(t)
	rbdtest.Run(t, rbdtest.Subject{Library: library, Account: account, Create: func(t testing.TB, size int64) rbd.Name {
		return create(t, account, size)
	}})
}

func TestStore(t *testing.T) {
	library, account := cluster(t)
	clients := rbd.NewClients(func() (rbd.Library, error) { return library, nil }, slog.New(slog.DiscardHandler))
	backstoretest.Run(t, backstoretest.Subject{Whole: true, Open: func(t *testing.T) backstore.Store {
		store, err := rbd.Open(rbd.Config{
			Clients: clients, Account: account, Image: create(t, account, backstoretest.Size), Server: "test", Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		return store
	}})
}
