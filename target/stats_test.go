package target_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/errstore"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
	"lunar/target"
)

// counted waits until the event threads have done all that goes with what they have
// sent: a command is counted after its response has left.
func (r *rig) counted() { r.server.Holding() }

// TestTraffic: commands and data of a session's LUN are counted when they end,
// and those of its logical unit stay when the session is gone.
func TestTraffic(t *testing.T) {
	r := newRig(t, rigOptions{lus: 2})
	c := r.login(initiator.Options{Alias: "the alias"})
	r.counted()
	before := r.server.Sessions()[0].LUNs[0].Traffic
	for range 3 {
		res, err := c.Command(cdbWrite16(0, 8), 0, make([]byte, 4096), 0)
		mustGood(t, res, err)
	}
	res, err := c.Command(cdbRead16(0, 128), 0, nil, 65536)
	mustGood(t, res, err)
	if res, err := c.Command(cdbWrite16(1<<40, 8), 0, make([]byte, 4096), 0); err != nil || res.Status == 0 {
		t.Fatalf("a write beyond the end ended with %v, %v", res, err)
	}
	if res, err = c.Command(make([]byte, 6), 7, nil, 0); err != nil || res.Status == 0 {
		t.Fatalf("a command to a LUN that is not mapped ended with %v, %v", res, err)
	}
	r.counted()
	s := r.server.Sessions()[0]
	want := target.Traffic{Reads: before.Reads + 1, Writes: before.Writes + 4, Others: before.Others,
		ReadBytes: before.ReadBytes + 65536, WrittenBytes: before.WrittenBytes + 3*4096}
	if s.LUNs[0].Traffic != want || s.LUNs[1].Traffic != (target.Traffic{}) {
		t.Errorf("found %+v, expected %+v and nothing", s.LUNs, want)
	}
	if s.Initiator != initiator.DefaultInitiator || s.Alias != "the alias" || s.Target != testTarget || s.InFlight != 0 || s.Window == 0 || s.Thread == "" ||
		s.Remote.Addr().String() != "127.0.0.1" || s.Local.String() != r.addr || time.Since(s.Opened) > time.Hour {
		t.Errorf("found %+v", s)
	}
	if _, err := c.Logout(0); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the session's end", func() bool { return len(r.server.Sessions()) == 0 })
	if found := r.server.Traffic()[r.lu]; found != want {
		t.Errorf("after the session found %+v, expected %+v", found, want)
	}
	again := r.login(initiator.Options{})
	res, err = again.Command(cdbWrite16(0, 8), 0, make([]byte, 4096), 0)
	mustGood(t, res, err)
	r.counted()
	if found := r.server.Traffic()[r.lu]; found.Writes != want.Writes+1 || found.WrittenBytes != want.WrittenBytes+4096 {
		t.Errorf("with another session found %+v, before %+v", found, want)
	}
}

// TestInFlight: a command counts while the store is at it.
func TestInFlight(t *testing.T) {
	ram, err := backstore.NewRAM(16<<20, 512)
	if err != nil {
		t.Fatal(err)
	}
	store := errstore.Wrap(ram)
	r := newRig(t, rigOptions{store: store})
	c := r.login(initiator.Options{})
	store.SetRules(errstore.Rule{Kinds: []backstore.Kind{backstore.Write}, Hold: true})
	task, err := c.Start(initiator.Command{CDB: cdbWrite16(0, 8), Out: make([]byte, 4096)})
	if err != nil {
		t.Fatal(err)
	}
	for store.Held() == 0 {
		if _, err := c.Step(time.Millisecond); err != nil && !errors.Is(err, initiator.ErrTimeout) {
			t.Fatal(err)
		}
	}
	if n := r.server.Sessions()[0].InFlight; n != 1 {
		t.Errorf("found %d commands in flight, expected 1", n)
	}
	store.SetRules()
	store.Release(-1)
	res, err := c.Wait(task)
	mustGood(t, res, err)
	r.counted()
	if n := r.server.Sessions()[0].InFlight; n != 0 {
		t.Errorf("found %d commands in flight, expected none", n)
	}
}

// TestTargetsAndThreads: who listens where, shows what, and serves how many.
func TestTargetsAndThreads(t *testing.T) {
	r := newRig(t, rigOptions{lus: 2})
	r.login(initiator.Options{})
	r.dial(initiator.Options{}) // a discovery session
	found := r.server.Targets()
	if len(found) != 1 || found[0].Name != testTarget || found[0].Sessions != 1 || len(found[0].Units) != 2 || !slices.Equal(found[0].Portals, []string{r.addr}) {
		t.Errorf("found %+v", found)
	}
	if sessions := r.server.Sessions(); len(sessions) != 2 || sessions[1].Target != "" || len(sessions[1].LUNs) != 0 {
		t.Errorf("found %+v", sessions)
	}
	eventually.Finds(t, "connections that have been handed to their threads", 2, func() (connections int) {
		for _, th := range r.server.Threads() {
			connections += th.Connections
			if th.Name == "" || th.Pool == 0 || th.Idle > th.Run {
				t.Fatalf("found %+v", th)
			}
		}
		return connections
	})
}
