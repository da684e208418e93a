package iser_test

import (
	"bytes"
	"slices"
	"sync"
	"testing"

	"lunar/backstore"
	"lunar/internal/eventually"
	"lunar/internal/evloop"
	"lunar/internal/initiator"
	"lunar/iser/isertest"
	"lunar/iser/verbs/fake"
	"lunar/scheduler"
	"lunar/target"
)

const gold = "iqn.2026-11.lunar:gold"

// promises are options of a server of one thread that has promised gold all, with turns
// of a nanosecond.
func promises(t *testing.T) options {
	p, err := scheduler.NewPolicy([]scheduler.Rule{{Name: "gold", Initiators: []string{gold}, Reservation: scheduler.Rate{IOPS: 1e6}}}, nil, scheduler.Cost{})
	if err != nil {
		t.Fatal(err)
	}
	return options{threads: 1, store: ram(t), server: target.Config{QoS: target.QoS{Policy: p, Gate: scheduler.GateConfig{Turn: 1}}}}
}

// noted is a store that knows how many bytes its operations had.
type noted struct {
	backstore.Store
	lengths *[]int64 // of the one thread that there is
}

func (n noted) Lane(l *evloop.Loop) (backstore.Lane, error) {
	lane, err := n.Store.Lane(l)
	return notedLane{lane, n.lengths}, err
}

type notedLane struct {
	backstore.Lane
	lengths *[]int64
}

func (n notedLane) TryNow(op *backstore.Op) bool {
	*n.lengths = append(*n.lengths, op.Length())
	return n.Lane.TryNow(op)
}

// TestPromisedGoFirst: a command whose completion comes behind many of another initiator
// is executed before these, and its answer leaves before the end of the pass.
func TestPromisedGoFirst(t *testing.T) {
	const depth, hogs, golds = 64, 512, 1024
	var mu sync.Mutex
	var answered []uint32 // QPs, as their answers were posted
	var executed []int64
	o := promises(t)
	o.store = noted{o.store, &executed}
	o.fabric.Posted = func(work fake.Work) {
		if work.Host == "target" {
			mu.Lock()
			answered = append(answered, work.QP)
			mu.Unlock()
		}
	}
	w := newWorld(t, o)
	drive := func(name string, n byte, depth, size int) *isertest.Driver {
		c, wire := w.dial(t, initiator.Options{Initiator: name, ISID: isid(n)}, isertest.Options{})
		w.check(c.Ready(0))
		d := wire.Drive(false, depth, size, 512, 0)
		t.Cleanup(d.Close)
		w.check(d.Batch())
		return d
	}
	hog, first := drive("iqn.2026-11.lunar:hog", 1, depth, hogs), drive(gold, 2, 1, golds)
	// What the thread has sent until now has completed, and it has seen that: else such a
	// completion is the first, and the promised one is executed behind that already.
	w.fabric.Settle()
	for range 2 { // a pass that has begun may have looked before
		seen := make(chan struct{})
		w.Loops()[0].Post(evloop.Func(func() { close(seen) }))
		<-seen
	}
	held, release := make(chan struct{}), make(chan struct{})
	w.Loops()[0].Post(evloop.Func(func() { close(held); <-release }))
	<-held
	mu.Lock()
	answered = nil
	mu.Unlock()
	executed = nil
	var all sync.WaitGroup
	for _, d := range []struct {
		*isertest.Driver
		depth uint64
	}{{hog, depth}, {first, 1}} {
		before := w.client.Device(0).Counters().Completions
		all.Go(func() {
			if err := d.Batch(); err != nil {
				t.Error(err)
			}
		})
		eventually.Finds(t, "commands delivered", before+d.depth, func() uint64 { return w.client.Device(0).Counters().Completions })
	}
	close(release)
	all.Wait()
	if len(executed) != depth+1 || executed[1] != golds {
		t.Errorf("executed reads of %v bytes, expected %d and one of %d behind the first", executed, depth+1, golds)
	}
	mu.Lock()
	defer mu.Unlock()
	// An answer is an RDMA Write and a response.
	if len(answered) != 2*(depth+1) || answered[0] != answered[1] || slices.Contains(answered[2:], answered[0]) {
		t.Errorf("answers of %v, expected both of the connection that sent one command first", answered)
	}
}

// TestInterruptedConnections: every command of one initiator may be interrupted by
// another's. All bytes are checked.
func TestInterruptedConnections(t *testing.T) {
	w := newWorld(t, promises(t))
	var all sync.WaitGroup
	for n, name := range []string{gold, gold, "iqn.2026-11.lunar:hog", "iqn.2026-11.lunar:hog", "iqn.2026-11.lunar:hog"} {
		c, _ := w.dial(t, initiator.Options{Initiator: name, ISID: isid(byte(n))}, isertest.Options{})
		w.check(c.Ready(0))
		lba := n << 8 // 128 KiB are its own
		all.Go(func() {
			for i, size := range slices.Repeat([]int{4096, 512, 64 << 10, 16 << 10}, 50) {
				data := pattern(size, byte(n+i))
				if r, err := c.Do(initiator.Command{CDB: write16(lba, size/512), Attr: initiator.AttrSimple, Out: data}); err != nil || r.Status != 0 {
					t.Errorf("write of %d bytes: %v, %+v", size, err, r)
				}
				r, err := c.Do(initiator.Command{CDB: read16(lba, size/512), Attr: initiator.AttrSimple, InLen: size})
				if err != nil || !bytes.Equal(r.In, data) {
					t.Errorf("read of %d bytes: %v, or other data than written", size, err)
				}
			}
		})
	}
	all.Wait()
}
