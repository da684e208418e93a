package target_test

import (
	"errors"
	"testing"

	"lunar/backstore"
	"lunar/backstore/errstore"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
	"lunar/target"
	"lunar/target/pdu"
	"lunar/target/scsi/sense"
)

// TestIncidents: what initiators are told of errors is counted by sense, and failures of
// the store for the volume.
func TestIncidents(t *testing.T) {
	ram, err := backstore.NewRAM(16<<20, 512)
	if err != nil {
		t.Fatal(err)
	}
	store := errstore.Wrap(ram)
	r := newRig(t, rigOptions{store: store})
	c := r.login(initiator.Options{})
	store.SetRules(errstore.Rule{Kinds: []backstore.Kind{backstore.Read}, Err: errors.New("broken")})
	for range 2 {
		if res, err := c.Command(cdbRead16(0, 8), 0, nil, 4096); err != nil || res.Status == 0 {
			t.Fatalf("a read of a broken store ended with %v, %v", res, err)
		}
	}
	if _, err := c.TaskManagement(initiator.TaskRequest{Function: byte(pdu.FunctionLogicalUnitReset)}); err != nil {
		t.Fatal(err)
	}
	damaged := target.SenseKind{Key: sense.MediumError, ASC: sense.ASCUnrecoveredReadError}
	eventually.Finds(t, "medium errors", 2, func() uint64 { return r.server.Incidents().Sense[damaged] })
	if n := r.server.Incidents(); n.Functions[pdu.FunctionLogicalUnitReset] != 1 || n.DataDigests != 0 || n.HeaderDigests != 0 {
		t.Errorf("found %+v", n)
	}
	if n := r.lu.StoreErrors(backstore.Read); n != 2 || r.lu.StoreErrors(backstore.Write) != 0 {
		t.Errorf("found %d failed reads", n)
	}
}
