package scsi

import (
	"testing"

	"lunar/internal/buf"
	"lunar/internal/waits"
	"lunar/target/scsi/reservation"
)

// TestAbortedPreemptIsWaitedFor: who ends a PREEMPT AND ABORT that the registrar has not
// carried out goes on after it has: its reservations are not saved behind the back of
// somebody who was told that it has ended.
func TestAbortedPreemptIsWaitedFor(t *testing.T) {
	began, goOn := make(chan struct{}), make(chan struct{})
	saves := 0
	d, n := members(t, 2, LUConfig{SaveReservations: func(*reservation.State) error {
		if saves++; saves == 3 {
			close(began)
			<-goOn
		}
		return nil
	}})
	for i, key := range []uint64{0xa, 0xb} {
		list := keys(0, key, 1) // APTPL
		if r := d.runAs(n[i], outCDB(reservation.Register, 0, list), list); r.status != Good {
			t.Fatalf("register: %+v", r)
		}
	}
	list := keys(0xa, 0xb, 0)
	pool, err := buf.NewPool(1<<20, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	port := &replyPort{list: list, lists: pool, woken: make(chan Task, 1)}
	cmd := &Command{Nexus: n[0], Lane: d.lane, Port: port, CDBLength: 10, HasOut: true, EDTL: uint32(len(list))}
	copy(cmd.CDB[:], outCDB(reservation.PreemptAndAbort, reservation.WriteExclusive, list))
	d.lu.Execute(cmd)
	<-began
	passed := make(chan int, 1)
	var by waits.List
	w := waits.New(func() { passed <- len(d.lu.reservations.Load().Registrations()) })
	w.Ends(&by, cmd.Awaiting())
	if cmd.Abort() {
		t.Fatal("it has ended while its reservations are saved")
	}
	w.Done()
	close(goOn)
	port.finish(t, cmd)
	by.Ended()
	if left := <-passed; left != 1 {
		t.Errorf("who ended it went on with %d registrations, expected one", left)
	}
}
