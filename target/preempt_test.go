package target_test

import (
	"encoding/binary"
	"testing"
	"time"

	"lunar/internal/initiator"
)

// persistentReserveOut sends a service action and returns how it ended.
func persistentReserveOut(t *testing.T, c *initiator.Conn, action, kind byte, key, serviceKey uint64) byte {
	t.Helper()
	res, err := c.Do(reserveOut(action, kind, key, serviceKey))
	if err != nil {
		t.Fatal(err)
	}
	return res.Status
}

func reserveOut(action, kind byte, key, serviceKey uint64) initiator.Command {
	list := binary.BigEndian.AppendUint64(nil, key)
	list = append(binary.BigEndian.AppendUint64(list, serviceKey), make([]byte, 8)...)
	return initiator.Command{CDB: []byte{0x5f, action, kind, 0, 0, 0, 0, 0, byte(len(list)), 0}, Out: list}
}

const (
	actionRegister        = 0
	actionReserve         = 1
	actionPreemptAndAbort = 5
	registrantsOnly       = 5 // write exclusive

	conflictStatus = 0x18
)

// TestPreemptAndAbort fences a session whose write is at the store: it is
// answered when that has ended, and not before; no later write gets through.
func TestPreemptAndAbort(t *testing.T) {
	r, store := holdingRig(t)
	a := r.login(initiator.Options{ISID: [6]byte{1}})
	b := r.login(initiator.Options{ISID: [6]byte{2}})
	for c, key := range map[*initiator.Conn]uint64{a: 0xa, b: 0xb} {
		if status := persistentReserveOut(t, c, actionRegister, 0, 0, key); status != 0 {
			t.Fatalf("register %x: status %02x", key, status)
		}
	}
	if status := persistentReserveOut(t, a, actionReserve, registrantsOnly, 0xa, 0); status != 0 {
		t.Fatalf("reserve: status %02x", status)
	}
	fenced := heldWrite(t, b, store, 0)
	answered := make(chan byte, 1)
	go func() { answered <- persistentReserveOut(t, a, actionPreemptAndAbort, registrantsOnly, 0xa, 0xb) }()
	select {
	case status := <-answered:
		t.Fatalf("status %02x while the store still works for the fenced one", status)
	case <-time.After(100 * time.Millisecond):
	}
	res, err := b.Command(cdbWrite16(4096, 8), 0, pattern(4096, 1), 0)
	if key, asc, ascq := res.SenseKey(); err != nil || key != 6 || asc != 0x2a || ascq != 5 {
		t.Errorf("%v, sense %x %x %x, expected REGISTRATIONS PREEMPTED", err, key, asc, ascq)
	}
	if res, err := b.Command(cdbWrite16(4096, 8), 0, pattern(4096, 1), 0); err != nil || res.Status != conflictStatus {
		t.Errorf("%+v, %v, expected RESERVATION CONFLICT", res, err)
	}
	store.Release(-1)
	if status := <-answered; status != 0 {
		t.Errorf("preempt and abort: status %02x", status)
	}
	b.Forget(fenced)
	store.SetRules()
	res, err = b.Command(cdbRead16(0, 8), 0, nil, 4096)
	mustGood(t, res, err) // and no status of the fenced write has come
	res, err = a.Command(cdbWrite16(0, 8), 0, pattern(4096, 2), 0)
	mustGood(t, res, err)
}

// TestPreemptEachOther: sessions that preempt and abort each other all the time
// never wait for each other for ever.
func TestPreemptEachOther(t *testing.T) {
	r := newRig(t, rigOptions{})
	done := make(chan struct{}, 3)
	for i := range 3 {
		c := r.login(initiator.Options{ISID: [6]byte{byte(i + 1)}})
		key := uint64(i + 1)
		go func() {
			defer func() { done <- struct{}{} }()
			var tasks []*initiator.Task
			for step := range 60 {
				for _, cmd := range []initiator.Command{
					reserveOut(6, 0, 0, key),
					reserveOut(actionPreemptAndAbort, 1, key, uint64((i+1+step)%3+1)),
				} {
					task, err := c.Start(cmd)
					if err != nil {
						t.Error(err)
						return
					}
					tasks = append(tasks, task)
				}
				// What was aborted gets no status: only the last counts.
				if _, err := c.TaskManagement(initiator.TaskRequest{Function: initiator.AbortTaskSet, Queued: true}); err != nil {
					t.Error(err)
					return
				}
				for _, task := range tasks {
					c.Forget(task)
				}
				tasks = tasks[:0]
			}
		}()
	}
	for range 3 {
		select {
		case <-done:
		case <-time.After(60 * time.Second):
			t.Fatal("they wait for each other")
		}
	}
}
