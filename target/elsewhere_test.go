package target_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/internal/initiator"
	"lunar/target"
	"lunar/target/login"
	"lunar/target/scsi"
)

// TestElsewhere: initiators hear of other servers' portal groups on their network, and for
// shared units those are target port groups, too.
func TestElsewhere(t *testing.T) {
	store, err := backstore.NewRAM(1<<20, 512)
	if err != nil {
		t.Fatal(err)
	}
	shared, err := scsi.NewLogicalUnit(scsi.LUConfig{Name: "shared", Store: store, Shared: true})
	if err != nil {
		t.Fatal(err)
	}
	shared.Settle(map[uint16]scsi.PortAccess{scsi.EveryTag: {State: scsi.Standby}, 1: {}}, nil)
	r := newRig(t, rigOptions{rules: func(lus []*scsi.LogicalUnit) []target.AccessRule {
		return []target.AccessRule{{Auth: login.Auth{AllowNone: true}, LUNs: []target.LUNMapping{{LUN: 0, LU: shared}, {LUN: 1, LU: lus[0]}}}}
	}})
	addresses := func() []string {
		t.Helper()
		found, err := r.dial(initiator.Options{}).SendTargets("All")
		if err != nil || len(found) != 1 {
			t.Fatalf("%v, %v", found, err)
		}
		return found[0].Addresses
	}
	if got := addresses(); len(got) != 1 {
		t.Errorf("found %q", got)
	}
	r.server.SetElsewhere(map[string][]target.Elsewhere{testTarget: {
		{Tag: 2, Beside: 1, Addresses: []string{"192.0.2.2:3260", "[2001:db8::2]:3260"}}, {Tag: 3, Beside: 7, Addresses: []string{"198.51.100.2:3260"}},
	}})
	if got, want := addresses(), []string{r.addr + ",1", "192.0.2.2:3260,2", "[2001:db8::2]:3260,2"}; !slices.Equal(got, want) {
		t.Errorf("found %q, expected %q", got, want)
	}
	c := r.login(initiator.Options{})
	for lun, want := range map[uint64][]uint16{0: {1, 2, 3}, 1: {1}} {
		if _, err := c.Command(make([]byte, 6), lun, nil, 0); err != nil { // the attention of a new nexus
			t.Fatal(err)
		}
		var tags []uint16
		data, err := c.Command([]byte{0xa3, 0x0a, 0, 0, 0, 0, 0, 0, 0, 128, 0, 0}, lun, nil, 128)
		if err != nil || data.Status != 0 {
			t.Fatalf("%+v, %v", data, err)
		}
		for at := 4; at+12 <= len(data.In); at += 12 {
			tags = append(tags, binary.BigEndian.Uint16(data.In[at+2:]))
		}
		if !slices.Equal(tags, want) {
			t.Errorf("LUN %d: found groups %v, expected %v", lun, tags, want)
		}
	}
}

// TestHeldCommands: while it is not decided who serves a unit, task management and the end of
// a session end its commands.
func TestHeldCommands(t *testing.T) {
	store, err := backstore.NewRAM(1<<20, 512)
	if err != nil {
		t.Fatal(err)
	}
	shared, err := scsi.NewLogicalUnit(scsi.LUConfig{Name: "shared", Store: store, Shared: true})
	if err != nil {
		t.Fatal(err)
	}
	here := map[uint16]scsi.PortAccess{scsi.EveryTag: {State: scsi.Standby}, 1: {}}
	shared.Settle(here, nil)
	r := newRig(t, rigOptions{rules: func([]*scsi.LogicalUnit) []target.AccessRule {
		return []target.AccessRule{{Auth: login.Auth{AllowNone: true}, LUNs: []target.LUNMapping{{LU: shared}}}}
	}})
	c, other := r.login(initiator.Options{}), r.login(initiator.Options{ISID: [6]byte{0x80, 0, 0, 0, 0, 9}})
	for _, c := range []*initiator.Conn{c, other} {
		if _, err := c.Command(make([]byte, 6), 0, nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	shared.Hold(time.Hour)
	wrong := pattern(4096, 1)
	aborted := start(t, c, initiator.Command{CDB: cdbWrite16(0, 8), Out: wrong})
	start(t, c, initiator.Command{CDB: cdbWrite16(8, 8), Out: wrong})
	start(t, other, initiator.Command{CDB: cdbWrite16(16, 8), Out: wrong})
	if code, err := c.TaskManagement(initiator.TaskRequest{Function: initiator.AbortTask, Referenced: aborted}); code != 0 || err != nil {
		t.Errorf("ABORT TASK: %d, %v", code, err)
	}
	other.Close()
	if code, err := c.TaskManagement(initiator.TaskRequest{Function: initiator.LogicalUnitReset}); code != 0 || err != nil {
		t.Errorf("LOGICAL UNIT RESET: %d, %v", code, err)
	}
	kept := start(t, c, initiator.Command{CDB: cdbWrite16(24, 8), Out: wrong})
	shared.Settle(here, nil)
	for range 3 { // the attention of the reset
		if res, err := c.Wait(kept); err != nil || res.Status == 0 {
			break
		}
		kept = start(t, c, initiator.Command{CDB: cdbWrite16(24, 8), Out: wrong})
	}
	got, err := c.Command(append([]byte{0x28, 0, 0, 0, 0, 0, 0, 0, 32}, 0), 0, nil, 32*512)
	if err != nil || got.Status != 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	if !bytes.Equal(got.In[:24*512], make([]byte, 24*512)) || !bytes.Equal(got.In[24*512:], wrong) {
		t.Error("a write that was ended was done, or the one that was not was not")
	}
}
