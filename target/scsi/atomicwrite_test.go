package scsi

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	"lunar/backstore"
	"lunar/target/scsi/sense"
)

// crew are event threads with a nexus each, whose one command at a time can be
// awaited.
type crew struct {
	threads []*thread
	nexuses []*Nexus
	current []*exchange // by thread; only its goroutine uses it
}

func newCrew(t *testing.T, m *medium, n int) *crew {
	first := newUnit(t, m, LUConfig{})
	k := &crew{current: make([]*exchange, n)}
	for i := range n {
		nexus := &Nexus{LU: first.LU, Initiator: fmt.Sprint(i), Map: first.Map}
		th := slow(t, m, uint64(i))
		nexus.AwaitTasks = func(match func(*Command) bool, done func()) {
			th.wake(task(func() {
				if x := k.current[i]; x != nil && x.ends == 0 && match(x.c) {
					x.awaited = append(x.awaited, done)
					return
				}
				done()
			}))
		}
		first.LU.Attach(nexus)
		nexus.takeAttention()
		k.threads, k.nexuses = append(k.threads, th), append(k.nexuses, nexus)
	}
	return k
}

type task func()

func (t task) Run() { t() }

// do runs a command on a thread to its end.
func (k *crew) do(i int, cdb, out []byte, in uint32) *exchange {
	th := k.threads[i]
	x := &exchange{thread: th, out: out, c: new(Command)}
	k.current[i] = x
	x.begin(k.nexuses[i], cdb, in)
	for x.ends == 0 {
		if !th.turn() {
			<-th.inbox.ready
		}
	}
	k.current[i] = nil
	return x
}

// run does work on all threads. Who has ended answers others still.
func (k *crew) run(t *testing.T, work func(i int)) {
	t.Helper()
	stop := make(chan struct{})
	var wg, idle sync.WaitGroup
	idle.Add(len(k.threads))
	for i := range k.threads {
		wg.Go(func() {
			work(i)
			idle.Done()
			for {
				select {
				case <-stop:
					return
				case <-k.threads[i].inbox.ready:
					for k.threads[i].turn() {
					}
				}
			}
		})
	}
	idle.Wait()
	close(stop)
	wg.Wait()
}

// TestWriteAtomicIsAtomic: whoever reads finds all of an atomic write or nothing,
// whatever else goes on.
func TestWriteAtomicIsAtomic(t *testing.T) {
	const threads, rounds, first, blocks = 4, 100, 504, 512
	m := newMedium(mib)
	k := newCrew(t, m, threads)
	k.run(t, func(i int) {
		for round := range rounds {
			if i == 0 {
				for range 100 * (round % 3) {
					runtime.Gosched() // reads begin while nothing is written
				}
				data := bytes.Repeat([]byte{byte(round*threads + i)}, blocks*512)
				x := k.do(i, cdb16(0x9c, 0, first, blocks), data, 0)
				for x.c.Status == Busy { // the readers took longer than it has patience
					x = k.do(i, cdb16(0x9c, 0, first, blocks), data, 0)
				}
				if x.c.Status != Good {
					t.Errorf("status %02x, sense %+v", x.c.Status, x.c.Sense)
				}
				continue
			}
			x := k.do(i, cdb16(0x88, 0, first-500, blocks+1000), nil, (blocks+1000)*512)
			if got := x.in[500*512:][:blocks*512]; !bytes.Equal(got[1:], got[:len(got)-1]) {
				t.Errorf("round %d: a read found %d and %d", round, got[0], got[len(got)-1])
			}
		}
	})
	checkGuardFree(t, k.nexuses[0].LU)
	if a := &k.nexuses[0].LU.atomics; a.pending.Load() || len(a.turns) != 0 {
		t.Errorf("%d turns are left", len(a.turns))
	}
}

// TestWriteAtomic: it is one stable operation.
func TestWriteAtomic(t *testing.T) {
	m := newMedium(mib)
	n := newUnit(t, m, LUConfig{})
	data := bytes.Repeat([]byte("atom"), 2048)
	x := prompt(t, m).start(n, cdb16(0x9c, 0x10, 16, 16), data, 0).finish()
	ops := m.ops()
	last := ops[len(ops)-1]
	if x.c.Status != Good || last.Kind != backstore.Write || !last.FUA || last.Off != 16*512 || last.Len != 8192 {
		t.Errorf("status %02x, sense %+v, operations %+v", x.c.Status, x.c.Sense, ops)
	}
	if !bytes.Equal(m.mu.bytes[16*512:][:8192], data) {
		t.Error("the data are not there")
	}
	before := len(m.ops()) // pieces of 8 blocks each, of which nobody sees a part either
	x = prompt(t, m).start(n, cdb16(0x9c, 0, 16, 8<<16|16), data, 0).finish()
	if x.c.Status != Good || len(m.ops()) != before+1 {
		t.Errorf("with a boundary: status %02x, sense %+v, %d operations", x.c.Status, x.c.Sense, len(m.ops())-before)
	}
	if x := prompt(t, m).start(n, cdb16(0x9c, 0, 16, 0), nil, 0).finish(); x.c.Status != Good {
		t.Errorf("of nothing: %+v", x.c.Sense)
	}
}

// TestWriteAtomicLosesPatience: a read that does not end costs the write, not the
// server.
func TestWriteAtomicLosesPatience(t *testing.T) {
	m := newMedium(mib)
	n := newUnit(t, m, LUConfig{})
	var ended func()
	n.AwaitTasks = func(_ func(*Command) bool, done func()) { ended = done }
	th := prompt(t, m)
	x := th.start(n, cdb16(0x9c, 0, 0, 8), make([]byte, 4096), 0)
	queued := th.start(n, cdb16(0x9c, 0, 0, 8), make([]byte, 4096), 0)
	read := th.start(n, cdb16(0x88, 0, 0, 8), nil, 4096)
	if x.ends+queued.ends+read.ends != 0 {
		t.Fatalf("%d, %d and %d ends before any read has", x.ends, queued.ends, read.ends)
	}
	n.LU.atomics.expire(queued.c.atomicTurn())
	n.LU.atomics.expire(x.c.atomicTurn())
	for th.turn() {
	}
	if x.c.Status != Busy || queued.c.Status != Busy || read.c.Status != Good || len(read.in) != 4096 {
		t.Errorf("status %02x, %02x and %02x", x.c.Status, queued.c.Status, read.c.Status)
	}
	ended()
	for th.turn() {
	}
	if n.LU.atomics.pending.Load() || x.ends+queued.ends+read.ends != 3 {
		t.Errorf("%d, %d and %d ends", x.ends, queued.ends, read.ends)
	}
}

// TestEndedLeaveTheirTurn: who is aborted, or fails, while it waits for atomic writes or
// as one of them for reads, ends at once, and those behind it go on.
func TestEndedLeaveTheirTurn(t *testing.T) {
	for _, abort := range []bool{true, false} {
		m := newMedium(mib)
		n := newUnit(t, m, LUConfig{})
		n.AwaitTasks = func(_ func(*Command) bool, done func()) {} // a read that never ends
		th := prompt(t, m)
		th.reach = []*Nexus{n}
		list := copyLID1(0, [][]byte{naaCSCD(n.LU)}, [][]byte{blocksSegment(0, 0, 8, 0, 1000, 0)})
		waiting := []*exchange{
			th.start(n, cdb16(0x9c, 0, 0, 8), make([]byte, 4096), 0), // for reads
			th.start(n, cdb16(0x9c, 0, 0, 8), make([]byte, 4096), 0),
			th.start(n, cdb16(0x88, 0, 0, 8), nil, 4096),
			th.start(n, copyCDB(0, list), list, 0),
		}
		last := th.start(n, cdb16(0x88, 0, 0, 8), nil, 4096)
		for i, x := range slices.Backward(waiting) { // else the next one is told to go on
			if x.ends > 0 {
				t.Fatalf("command %d does not wait: %02x, %+v", i, x.c.Status, x.c.Sense)
			}
			switch {
			case !abort:
				x.c.Fail(sense.LUNotSupported)
			case x.c.Abort():
				x.ends++
			}
			if x.ends != 1 || x.c.running != 0 {
				t.Errorf("command %d, aborted %v: %d ends, still waits for %d", i, abort, x.ends, x.c.running)
			}
		}
		for th.turn() {
		}
		if last.ends != 1 || last.c.Status != Good {
			t.Errorf("what waited behind them: %d ends, status %02x", last.ends, last.c.Status)
		}
		if a := &n.LU.atomics; a.pending.Load() || len(a.turns) != 0 {
			t.Errorf("%d turns are left", len(a.turns))
		}
		checkGuardFree(t, n.LU)
	}
}

// TestWriteSameToTheEnd: a number of blocks of 0 asks for all up to the end, if
// that is no more than may be asked for.
func TestWriteSameToTheEnd(t *testing.T) {
	m := newMedium(mib)
	for i := range m.mu.bytes {
		m.mu.bytes[i] = 1
	}
	n := newUnit(t, m, LUConfig{})
	for _, cdb := range [][]byte{cdb16(0x93, 0, 2000, 0), cdb10(0x41, 0, 1000, 0)} {
		n.LU.traits.Load().limits.MaxWriteSame = 1048
		if x := prompt(t, m).start(n, cdb, make([]byte, 512), 0).finish(); x.c.Status != Good {
			t.Errorf("%x: %+v", cdb, x.c.Sense)
		}
		n.LU.traits.Load().limits.MaxWriteSame = 47
		if x := prompt(t, m).start(n, cdb, make([]byte, 512), 0).finish(); x.c.Status != CheckCondition {
			t.Errorf("%x of more than may be asked for: %02x", cdb, x.c.Status)
		}
	}
	n.LU.traits.Load().limits.MaxWriteSame, n.LU.traits.Load().limits.WriteSameNonZero = 1048, true
	if x := prompt(t, m).start(n, cdb16(0x93, 0, 2000, 0), make([]byte, 512), 0).finish(); x.c.Status != CheckCondition {
		t.Errorf("with WSNZ: %02x", x.c.Status)
	}
	if got := bytes.Count(m.mu.bytes, []byte{0}); got != 1048*512 || m.mu.bytes[1000*512-1] != 1 {
		t.Errorf("%d bytes are zero, expected %d", got, 1048*512)
	}
}

// TestWriteAtomicAwaitsReads: those that have begun end first; those of other
// blocks do not matter.
func TestWriteAtomicAwaitsReads(t *testing.T) {
	m := newMedium(mib)
	n := newUnit(t, m, LUConfig{})
	th := newThread(t, m, 1)
	th.defers = 100
	read, other := th.start(n, cdb16(0x88, 0, 0, 1000), nil, 1000*512), th.start(n, cdb16(0x88, 0, 1500, 8), nil, 4096)
	n.AwaitTasks = func(match func(*Command) bool, done func()) {
		if !match(read.c) || match(other.c) {
			t.Errorf("waits for the read: %v, for another: %v", match(read.c), match(other.c))
		}
		read.awaited = append(read.awaited, done)
	}
	x := th.start(n, cdb16(0x9c, 0, 400, 512), bytes.Repeat([]byte{1}, 512*512), 0)
	for x.ends == 0 {
		if i := slices.IndexFunc(m.ops(), func(op backstore.Op) bool { return op.Kind == backstore.Write }); i >= 0 && read.ends == 0 {
			t.Fatal("it was written before the read had ended")
		}
		th.turn()
	}
	if !isZero(read.in) || len(read.in) != 1000*512 || x.c.Status != Good {
		t.Errorf("the read found some of it; status %02x", x.c.Status)
	}
}
