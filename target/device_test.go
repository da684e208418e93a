package target_test

import (
	"testing"

	"lunar/backstore"
	"lunar/backstore/errstore"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
	"lunar/scheduler"
	"lunar/target"
)

// heldStore is a RAM store that holds all reads back until they are released.
func heldStore(t *testing.T) *errstore.Store {
	t.Helper()
	ram, err := backstore.NewRAM(16<<20, 512)
	if err != nil {
		t.Fatal(err)
	}
	return errstore.Wrap(ram, errstore.Rule{Kinds: []backstore.Kind{backstore.Read}, Hold: true})
}

// TestStuckDeviceHoldsNobodyElseUp: a device that does nothing at all, with as
// many commands waiting for it as there may be, takes no turn of another one on
// the same event thread, not of the same session either.
func TestStuckDeviceHoldsNobodyElseUp(t *testing.T) {
	const window, depth = 4, 40
	stuck := heldStore(t)
	rule := scheduler.Rule{Name: "gold", Initiators: []string{"*"}, Reservation: scheduler.Rate{IOPS: 100}}
	r := newRig(t, rigOptions{lus: 2, stores: []backstore.Store{stuck}, config: target.Config{Threads: 1,
		QoS: target.QoS{Policy: rules(t, rule), Gate: scheduler.GateConfig{Window: window}}}})
	c := r.login(initiator.Options{})
	c.Timeout = patience
	if err := c.Ready(1); err != nil {
		t.Fatal(err)
	}
	var tasks []*initiator.Task
	for i := range depth {
		tasks = append(tasks, start(t, c, initiator.Command{CDB: cdbRead16(uint64(8*i), 8), InLen: 4096}))
	}
	eventually.Holds(t, "the window of the first device is full", func() bool { return stuck.Held() == window && r.waiting() == depth-window })
	for range 200 {
		res, err := c.Command(cdbRead16(0, 8), 1, nil, 4096)
		mustGood(t, res, err)
	}
	if n := stuck.Held(); n != window {
		t.Errorf("%d commands are under way on the first device, expected %d", n, window)
	}
	stuck.SetRules()
	stuck.Release(-1)
	for _, task := range tasks {
		res, err := c.Wait(task)
		mustGood(t, res, err)
	}
	if d := r.server.QoS("").Devices; len(d) != 2 || d[0].Name != "v0" || d[1].Name != "v1" {
		t.Errorf("found %+v, expected the two devices", d)
	}
}
