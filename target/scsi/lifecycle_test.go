package scsi

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"
	"unsafe"

	"lunar/backstore"
	"lunar/target/scsi/sense"
)

// largeCommands are commands of several segments or operations on blocks 100
// to 2099 of 4 MiB, with their Data-Out.
func largeCommands() map[string]struct{ cdb, out []byte } {
	data := bytes.Repeat([]byte{1}, 2000*512)
	list := unmapList([2]uint64{100, 500}, [2]uint64{1000, 1}, [2]uint64{2000, 100})
	return map[string]struct{ cdb, out []byte }{
		"READ":              {cdb16(0x88, 0, 100, 2000), nil},
		"WRITE":             {cdb16(0x8a, 0, 100, 2000), data},
		"WRITE FUA":         {cdb16(0x8a, 8, 100, 2000), data},
		"small WRITE":       {cdb16(0x8a, 0, 100, 8), data[:4096]},
		"VERIFY":            {cdb16(0x8f, 0, 100, 2000), nil},
		"VERIFY data":       {cdb16(0x8f, 2, 100, 2000), make([]byte, len(data))},
		"VERIFY block":      {cdb16(0x8f, 6, 100, 2000), make([]byte, 512)},
		"WRITE AND VERIFY":  {cdb16(0x8e, 2, 100, 2000), data},
		"COMPARE AND WRITE": {cdb16(0x89, 0, 100, 64), make([]byte, 2*64*512)},
		"WRITE ATOMIC":      {cdb16(0x9c, 0, 104, 512), data[:512*512]},
		"WRITE SAME":        {cdb16(0x93, 0, 100, 2000), data[:512]},
		"WRITE SAME zero":   {cdb16(0x93, 0, 100, 2000), make([]byte, 512)},
		"UNMAP":             {unmapCDB(list), list},
		"SYNCHRONIZE CACHE": {cdb16(0x91, 0, 100, 2000), nil},
		"GET LBA STATUS":    {append([]byte{0x9e, 0x12}, cdb16(0, 0, 100, 512)[2:]...), nil},
	}
}

// slow makes everything happen later, so that there is a step between any two
// events.
func slow(t testing.TB, m *medium, seed uint64) *thread {
	th := newThread(t, m, seed)
	th.starve, th.defers, th.late, th.lends, th.part = 30, 80, 80, 30, 64<<10
	return th
}

// TestAbortAtEveryStep aborts every command after every number of events.
func TestAbortAtEveryStep(t *testing.T) {
	for name, tt := range largeCommands() {
		t.Run(name, func(t *testing.T) {
			m := newMedium(4 * mib)
			n := newUnit(t, m, LUConfig{})
			th := slow(t, m, 1)
			for step := 0; abortAt(th, n, tt.cdb, tt.out, step); step++ {
			}
		})
	}
}

// abortAt aborts a command after step events. It returns false if the command
// had ended by then.
func abortAt(th *thread, n *Nexus, cdb, out []byte, step int) bool {
	t, m := th.t, th.medium
	clear(m.mu.bytes)
	x := th.start(n, cdb, out, 2000*512)
	for range step {
		th.turn()
	}
	if x.ends > 0 {
		x.finish()
		return false
	}
	ended := x.c.Abort()
	if ended {
		x.ends++ // the port takes it back: nothing may touch it any more
	} else if x.c.running == 0 {
		t.Fatalf("step %d: Abort waits for nothing", step)
	}
	x.finish()
	if !x.c.Aborted() {
		t.Fatalf("step %d: not aborted", step)
	}
	checkGuardFree(t, n.LU)
	if !isZero(m.mu.bytes[:100*512]) || !isZero(m.mu.bytes[2100*512:]) {
		t.Fatalf("step %d: wrote beyond the extent", step)
	}
	return true
}

// TestFailTransferAtEveryStep: a transport that loses Data-Out ends the command
// without it, whether or not it has failed before for another reason.
func TestFailTransferAtEveryStep(t *testing.T) {
	for name, tt := range largeCommands() {
		if tt.out == nil {
			continue
		}
		for _, broken := range []bool{false, true} {
			t.Run(fmt.Sprint(name, broken), func(t *testing.T) {
				m := newMedium(4 * mib)
				if broken {
					m.fail = func(*backstore.Op) error { return errors.New("broken") }
				}
				n := newUnit(t, m, LUConfig{})
				th := slow(t, m, 1)
				for step := 0; failTransferAt(th, n, tt.cdb, tt.out, step); step++ {
				}
			})
		}
	}
}

// failTransferAt fails a command's transfer after step events. It returns
// false if the command had ended by then.
func failTransferAt(th *thread, n *Nexus, cdb, out []byte, step int) bool {
	x := th.start(n, cdb, out, 0)
	for range step {
		th.turn()
	}
	if x.ends > 0 {
		x.finish()
		return false
	}
	x.lost, x.receiving = true, 0
	x.c.FailTransfer(sense.DataPhaseError)
	x.finish()
	if x.c.Status != CheckCondition || x.c.Sense != sense.DataPhaseError && x.c.Sense.Key != sense.MediumError {
		th.t.Fatalf("step %d: status %02x, sense %+v", step, x.c.Status, x.c.Sense)
	}
	checkGuardFree(th.t, n.LU)
	return true
}

// checkGuardFree checks that no command holds anything in the extent guard.
func checkGuardFree(t testing.TB, lu *LogicalUnit) {
	t.Helper()
	for i := range lu.guard.shards {
		if s := &lu.guard.shards[i]; s.word.Load() != 0 || s.head != nil || s.tail != nil || s.exclusive {
			t.Fatalf("shard %d: word %x, held %v, queue %v", i, s.word.Load(), s.exclusive, s.head != nil)
		}
	}
}

// TestFailureOfEveryOperation lets each operation of every command fail once.
func TestFailureOfEveryOperation(t *testing.T) {
	for name, tt := range largeCommands() {
		t.Run(name, func(t *testing.T) {
			for nth := 0; ; nth++ {
				m := newMedium(4 * mib)
				made := 0
				m.fail = func(op *backstore.Op) error {
					if made++; made == nth+1 {
						return errors.New("broken")
					}
					return nil
				}
				n := newUnit(t, m, LUConfig{})
				x := slow(t, m, uint64(nth)).start(n, tt.cdb, tt.out, 2000*512).finish()
				checkGuardFree(t, n.LU)
				if made <= nth {
					if x.c.Status != Good {
						t.Fatalf("without a failure: status %02x, %+v", x.c.Status, x.c.Sense)
					}
					break
				}
				if x.c.Status != CheckCondition || x.c.Sense.Key != sense.MediumError {
					t.Fatalf("operation %d failed: status %02x, %+v", nth, x.c.Status, x.c.Sense)
				}
			}
		})
	}
}

// TestReuse runs commands of all kinds in one Command with Reset between them.
func TestReuse(t *testing.T) {
	m := newMedium(4 * mib)
	n := newUnit(t, m, LUConfig{})
	th := slow(t, m, 7)
	x := &exchange{thread: th, c: new(Command)}
	for round := range 5 {
		for name, tt := range largeCommands() {
			clear(m.mu.bytes)
			x.out, x.in, x.ends, x.asked, x.receiving, x.last, x.starving = tt.out, nil, 0, 0, 0, false, false
			x.begin(n, tt.cdb, 2000*512)
			if round == 2 && x.ends == 0 && x.c.Abort() {
				x.ends++
			}
			x.finish()
			if x.c.Status != Good && round != 2 {
				t.Fatalf("%s: status %02x, sense %+v", name, x.c.Status, x.c.Sense)
			}
			x.c.Reset()
		}
	}
}

// TestSegmentsInParallel: a large command has MaxSegments operations under way
// and no more memory than that.
func TestSegmentsInParallel(t *testing.T) {
	for _, tt := range []struct{ cdb, out []byte }{
		{cdb16(0x88, 0, 0, 8192), nil},
		{cdb16(0x8a, 0, 0, 8192), make([]byte, 4*mib)},
	} {
		m := newMedium(4 * mib)
		th := newThread(t, m, 3)
		th.defers, th.late = 100, 0
		th.starve = 0
		x := th.start(newUnit(t, m, LUConfig{}), tt.cdb, tt.out, 4*mib)
		if x.c.running != MaxSegments || th.pool.InUse() != MaxSegments {
			t.Errorf("%x: %d operations, %d buffers, expected %d", tt.cdb, x.c.running, th.pool.InUse(), MaxSegments)
		}
		x.finish()
	}
}

// TestCompareAndWriteIsAtomic increments counters by COMPARE AND WRITE on
// several event threads while others write, release and zero around them. An
// increment that is lost, or a compare that sees half a write, breaks the
// count.
func TestCompareAndWriteIsAtomic(t *testing.T) {
	const threads, rounds = 4, 150
	m := newMedium(4 * mib)
	n := newUnit(t, m, LUConfig{})
	var wg sync.WaitGroup
	for i := range threads {
		th := slow(t, m, uint64(i))
		wg.Go(func() {
			for range rounds {
				increment(th, n)
				disturb(th, n)
			}
		})
	}
	wg.Wait()
	checkGuardFree(t, n.LU)
	var sum int
	for _, lba := range counters {
		sum += int(m.mu.bytes[lba*512]) | int(m.mu.bytes[lba*512+1])<<8
	}
	if sum != threads*rounds {
		t.Errorf("%d increments arrived, expected %d", sum, threads*rounds)
	}
}

// counters are blocks in the first and second stripe; the third command's two
// blocks span both stripes.
var counters = []uint64{10, 2047, 2049}

// increment adds one to a counter with as many COMPARE AND WRITEs as it takes.
func increment(th *thread, n *Nexus) {
	lba := counters[th.rng.IntN(len(counters))]
	blocks := 1 + uint64(th.rng.IntN(2))*(lba%2) // 2047 and 2049 with their neighbour
	for {
		old := th.do(n, cdb16(0x88, 0, lba, blocks), nil, uint32(blocks*512)).in
		next := bytes.Clone(old)
		if next[0]++; next[0] == 0 {
			next[1]++
		}
		if th.do(n, cdb16(0x89, 0, lba, blocks), append(old, next...), 0).c.Status == Good {
			return
		}
	}
}

// disturb changes blocks beside the counters that no COMPARE AND WRITE covers.
func disturb(th *thread, n *Nexus) {
	lba := uint64(20 + th.rng.IntN(100))
	switch th.rng.IntN(3) {
	case 0:
		th.do(n, cdb16(0x8a, 0, lba, 8), bytes.Repeat([]byte{3}, 4096), 0)
	case 1:
		th.do(n, cdb16(0x93, 9, lba+2100, 8), nil, 0)
	case 2:
		list := unmapList([2]uint64{lba, 3}, [2]uint64{lba + 2100, 3})
		th.do(n, unmapCDB(list), list, 0)
	}
}

// do runs a command on a thread that waits for wakes from others.
func (th *thread) do(n *Nexus, cdb, out []byte, in uint32) *exchange {
	x := th.start(n, cdb, out, in)
	for x.ends == 0 {
		if !th.turn() {
			<-th.inbox.ready
		}
	}
	return x.finish()
}

// TestWritesDoNotMeetCompareAndWrite: no write begins between the read and the
// write of a COMPARE AND WRITE of the same stripe.
func TestWritesDoNotMeetCompareAndWrite(t *testing.T) {
	for seed := range uint64(200) {
		m := newMedium(4 * mib)
		n := newUnit(t, m, LUConfig{})
		th := slow(t, m, seed)
		var xs []*exchange
		for i := range 6 {
			xs = append(xs, th.start(n, cdb16(0x89, 0, uint64(i), 1), make([]byte, 1024), 0))
			xs = append(xs, th.start(n, cdb16(0x8a, 0, 1000, 1), make([]byte, 512), 0))
		}
		for th.turn() {
		}
		for _, x := range xs {
			x.finish()
		}
		checkGuardFree(t, n.LU)
		ops := m.ops()
		for i, op := range ops {
			if op.Kind == backstore.Read && (ops[i+1].Kind != backstore.Write || ops[i+1].Off != op.Off) {
				t.Fatalf("seed %d: %s", seed, describeAt(ops[i:i+2]))
			}
		}
	}
}

func describeAt(ops []backstore.Op) string {
	var b bytes.Buffer
	for _, op := range ops {
		fmt.Fprintf(&b, "%s at %d; ", op.Kind, op.Off)
	}
	return b.String()
}

// TestHoldShards: the shards of an extent are ascending, distinct and those of
// its stripes, also around the end.
func TestHoldShards(t *testing.T) {
	lu := new(LogicalUnit)
	seg := &segment{cmd: &Command{Nexus: &Nexus{LU: lu}}}
	if size := unsafe.Sizeof(shard{}); size != 64 {
		t.Errorf("a shard has %d bytes, expected a cache line of 64", size)
	}
	position := make(map[*shard]int)
	for i := range lu.guard.shards {
		position[&lu.guard.shards[i]] = i
	}
	for _, first := range []int64{0, 1, 100, 254, 255, 256, 1000} {
		for _, stripes := range []int64{1, 2, 3, 17, 255, 256, 257, 9999} {
			h := extentLock{owner: seg}
			h.cover(shared, first<<stripeShift+5, (stripes-1)<<stripeShift+1)
			got := make(map[int]bool)
			last := -1
			for i := range h.count {
				at := position[h.shard(i)]
				if at <= last {
					t.Fatalf("%d stripes from %d: shard %d after %d", stripes, first, at, last)
				}
				last, got[at] = at, true
			}
			for s := first; s < first+min(stripes, 300); s++ {
				if !got[int(s%guardShards)] {
					t.Fatalf("%d stripes from %d: shard of stripe %d is missing", stripes, first, s)
				}
			}
			if int64(len(got)) != min(stripes, guardShards) {
				t.Fatalf("%d stripes from %d: %d shards", stripes, first, len(got))
			}
		}
	}
}
