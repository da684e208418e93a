package target_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/errstore"
	"lunar/internal/initiator"
	"lunar/target"
)

// A command longer than all the memory that its session may hold goes through
// it piece by piece.
func TestCommandLargerThanSessionMemory(t *testing.T) {
	r := newRig(t, rigOptions{config: target.Config{Limits: target.Limits{SessionMemory: 512 << 10}}})
	c := r.login(initiator.Options{})
	c.Timeout = 3 * time.Second
	data := pattern(3<<20, 1)
	res, err := c.Command(cdbWrite16(0, uint32(len(data)/512)), 0, data, 0)
	mustGood(t, res, err)
	res, err = c.Command(cdbRead16(0, uint32(len(data)/512)), 0, nil, len(data))
	if !bytes.Equal(mustGood(t, res, err).In, data) {
		t.Fatal("read back other data")
	}
}

// More large writes at once than the memory holds wait for each other, and all
// of them end.
func TestManyLargeWritesInLittleMemory(t *testing.T) {
	r := newRig(t, rigOptions{config: target.Config{Buffers: 2 << 20}})
	c := r.login(initiator.Options{})
	c.Timeout = 3 * time.Second
	data := pattern(1<<20, 3)
	var tasks []*initiator.Task
	for i := range 12 {
		tasks = append(tasks, start(t, c, initiator.Command{CDB: cdbWrite16(uint64(i)*2048, 2048), Out: data}))
	}
	full := 0
	for _, task := range tasks {
		res, err := c.Wait(task)
		if err != nil {
			t.Fatal(err)
		}
		if res.Status == initiator.StatusTaskSetFull {
			full++
			continue
		}
		mustGood(t, res, err)
	}
	if full == len(tasks) {
		t.Fatal("no write went through")
	}
}

// A read that fails half way has sent some of its data.
func TestReadFailsHalfWay(t *testing.T) {
	ram, err := backstore.NewRAM(16<<20, 512)
	if err != nil {
		t.Fatal(err)
	}
	store := errstore.Wrap(ram, errstore.Rule{Kinds: []backstore.Kind{backstore.Read}, Off: 512 << 10, Len: 512, Err: errMedium})
	r := newRig(t, rigOptions{store: store})
	c := r.login(initiator.Options{Keys: initiator.Keys{{Name: "MaxBurstLength", Value: "1048576"}}})
	for _, n := range []int{513 << 10, 1 << 20, 3 << 20} {
		res, err := c.Command(cdbRead16(0, uint32(n/512)), 0, nil, n)
		if err != nil {
			t.Fatal(err)
		}
		if key, asc, _ := res.SenseKey(); key != 3 || asc != 0x11 {
			t.Fatalf("%d bytes: sense %x/%02x, expected 3/11", n, key, asc)
		}
	}
}

var errMedium = errors.New("medium error of the test")
