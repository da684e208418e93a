package member

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"lunar/cluster/etcd"
	"lunar/internal/durable"
	"lunar/internal/eventually"
)

// obstructed has files of a directory that cannot be replaced, as where there is no room, until it
// is called.
func obstructed(t *testing.T, d Dir, name string) (clear func()) {
	t.Helper()
	beside := d.path(name) + durable.Half
	if err := os.MkdirAll(beside+"/x", 0o700); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.RemoveAll(beside); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNotedLater: what could not be noted of a cluster's members is noted when it can be. Without it
// a member whose data are lost would begin another cluster.
func TestNotedLater(t *testing.T) {
	d := firstDir(t)
	s, err := d.Settings()
	if err != nil {
		t.Fatal(err)
	}
	u := upkeep{dir: d, settings: s}
	clear := obstructed(t, d, settingsFile)
	members := []etcd.Member{{Name: "n2", Clients: []string{"https://192.0.2.2:7422"}}}
	if u.note(members) == nil {
		t.Fatal("it was noted where nothing can be written")
	}
	clear()
	if err := u.note(members); err != nil {
		t.Fatal(err)
	}
	if s, err = d.Settings(); err != nil || !s.Joined || len(s.Clients) != 1 {
		t.Errorf("found %+v, %v", s, err)
	}
}

// TestKeeperWithoutRoom: a keeper that cannot write etcd's configuration, as on a full disk, goes on
// and starts etcd when it can, and tells the reason once.
func TestKeeperWithoutRoom(t *testing.T) {
	d := firstDir(t)
	s, err := d.Settings()
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	started := make(chan struct{}, 100)
	log := &eventually.Output{}
	k := &Keeper{Dir: d, Log: slog.New(slog.NewTextHandler(log, nil)), Messages: &bytes.Buffer{}, Etcd: func(...string) *exec.Cmd {
		started <- struct{}{}
		return exec.Command("sleep", "60")
	}}
	o, err := d.Options()
	if err != nil {
		t.Fatal(err)
	}
	o.Guard = ""
	state, err := etcd.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer state.Close()
	clear := obstructed(t, d, etcdFile)
	ended := make(chan error, 1)
	go func() { ended <- k.keepEtcd(ctx, s, state) }()
	eventually.Holds(t, "it was told", func() bool { return strings.Contains(log.String(), etcdFile) })
	time.AfterFunc(4*soonest, clear) // some attempts later
	select {
	case <-started:
	case err := <-ended:
		t.Fatalf("it has ended: %v", err)
	}
	end()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if n := strings.Count(log.String(), "\n"); n != 1 {
		t.Errorf("found %d lines, expected one:\n%s", n, log)
	}
}
