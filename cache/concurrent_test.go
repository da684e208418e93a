package cache

import (
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// disk is a store of sub-blocks whose bytes all carry one version.
type disk struct {
	mu   sync.Mutex
	data map[Key]*[subs]uint64
}

func (d *disk) read(k Key, i int) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if b := d.data[k]; b != nil {
		return b[i]
	}
	return 0
}

func (d *disk) write(k Key, i int, v uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.data[k] == nil {
		d.data[k] = new([subs]uint64)
	}
	d.data[k][i] = v
}

// machine is a partition with real memory, used by many threads.
type machine struct {
	t       *testing.T
	p       *Partition
	arena   []byte
	disk    disk
	version atomic.Uint64
	newest  [2][8][subs]atomic.Uint64 // acknowledged last: versions of a sub-block only rise
}

const sub = 64 // bytes of a sub-block that the test really keeps

func (m *machine) bytes(slot uint32, i int) []byte {
	return m.arena[(int(slot)*subs+i)*sub:][:sub]
}

func stamp(b []byte, v uint64) {
	for ; len(b) > 0; b = b[8:] {
		binary.LittleEndian.PutUint64(b, v)
	}
}

// version reads a sub-block that must not be torn.
func (m *machine) seen(b []byte) uint64 {
	v := binary.LittleEndian.Uint64(b)
	for ; len(b) > 0; b = b[8:] {
		if o := binary.LittleEndian.Uint64(b); o != v {
			m.t.Errorf("torn sub-block: versions %d and %d", v, o)
		}
	}
	return v
}

// thread is one user of the partition.
type thread struct {
	*machine
	r    *rand.Rand
	wake chan struct{}
	w    Waiter
}

func (m *machine) thread(seed uint64) *thread {
	th := &thread{machine: m, r: rand.New(rand.NewPCG(seed, 0)), wake: make(chan struct{}, 1)}
	th.w.Owner = th
	return th
}

// hand wakes those that can go on.
func hand(chain *Waiter) {
	for chain != nil {
		next := chain.Next()
		chain.Owner.(*thread).wake <- struct{}{}
		chain = next
	}
}

func (th *thread) read(k Key, want uint64) {
	var before [subs]uint64
	each(want, func(i int) { before[i] = th.newest[k.LU][k.Block][i].Load() })
	for {
		switch r := th.p.Read(k, want, &th.w); r.Outcome {
		case Wait:
			<-th.wake
		case Bypass:
			return
		case Hit:
			th.look(k, r.Slot, want, &before)
			return
		case Fill:
			each(r.Mask, func(i int) { stamp(th.bytes(r.Slot, i), th.disk.read(k, i)) })
			pinned, chain := th.p.EndFill(r.Slot, r.Mask, want, nil)
			hand(chain)
			if pinned {
				th.look(k, r.Slot, want, &before)
				return
			}
		}
	}
}

// pass lets others run now and then, so that they meet what the thread holds also on a
// machine that runs one thread at a time.
func (th *thread) pass() {
	if th.r.IntN(8) == 0 {
		runtime.Gosched()
	}
}

// look reads pinned memory for a while.
func (th *thread) look(k Key, slot uint32, want uint64, before *[subs]uint64) {
	for range 3 {
		each(want, func(i int) {
			if v := th.seen(th.bytes(slot, i)); v < before[i] {
				th.t.Errorf("%v, sub-block %d: version %d after %d was acknowledged", k, i, v, before[i])
			}
		})
		th.pass()
	}
	hand(th.p.Unpin(slot))
}

func (th *thread) write(k Key, mask uint64) {
	g := th.p.BeginWrite(k, mask, mask, true, &th.w)
	for ; g.Outcome == Wait; g = th.p.BeginWrite(k, mask, mask, true, &th.w) {
		<-th.wake
	}
	if g.Outcome == Bypass { // versions of concurrent bypassing writes would not rise
		hand(th.p.EndWrite(&g, Failed))
		return
	}
	th.pass()
	v := th.version.Add(1)
	each(mask, func(i int) { stamp(th.bytes(g.Slot, i), v) })
	end := Dirty
	if th.r.IntN(2) == 0 {
		end = Clean
		each(mask, func(i int) { th.disk.write(k, i, v) })
	}
	each(mask, func(i int) { th.newest[k.LU][k.Block][i].Store(v) })
	hand(th.p.EndWrite(&g, end))
}

func (th *thread) flush() bool {
	out := make([]Extent, 4)
	run := th.p.TakeDirty(Key{}, Key{LU: 9}, out, nil)
	if run.Outcome != Granted {
		return false
	}
	for _, e := range out[:run.Extents] {
		each(ones(e.Off/4096, (e.Off+e.Len)/4096), func(i int) { th.disk.write(e.Key, i, th.seen(th.bytes(e.Slot, i))) })
	}
	hand(th.p.EndFlush(out[:run.Extents], th.r.IntN(10) > 0))
	return true
}

func (th *thread) run(steps int) {
	for range steps {
		k := Key{uint32(th.r.IntN(2)), uint64(th.r.IntN(8))}
		mask := 1 + uint64(th.r.IntN(1<<subs-1))
		switch th.r.IntN(8) {
		case 0, 1, 2, 3:
			th.read(k, mask)
		case 4, 5:
			th.write(k, mask)
		case 6:
			th.flush()
		case 7:
			if r := th.p.Prefetch(k, mask); r.Outcome == Fill {
				each(r.Mask, func(i int) { stamp(th.bytes(r.Slot, i), th.disk.read(k, i)) })
				_, chain := th.p.EndFill(r.Slot, r.Mask, 0, nil)
				hand(chain)
			}
		}
	}
}

// Many threads in one partition: no torn data, no lost write, nobody forgotten.
func TestConcurrentUse(t *testing.T) {
	const slots, threads, steps = 10, 6, 3000
	p, err := NewPartition(Config{Slots: slots, BlockSize: subs * 4096, LUs: 2}, nil)
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{t: t, p: p, arena: make([]byte, slots*subs*sub), disk: disk{data: map[Key]*[subs]uint64{}}}
	done := make(chan struct{})
	var wg sync.WaitGroup
	for i := range threads {
		wg.Go(func() { m.thread(uint64(i)).run(steps) })
	}
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatalf("somebody waits for ever: %+v", p.Stats())
	}
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	for last := m.thread(99); last.flush(); {
	}
	for lu := range m.newest {
		for n := range m.newest[lu] {
			for i := range subs {
				k := Key{uint32(lu), uint64(n)}
				if got, want := m.disk.read(k, i), m.newest[lu][n][i].Load(); got != want {
					t.Errorf("%v, sub-block %d: the disk has version %d, expected %d", k, i, got, want)
				}
			}
		}
	}
	if s := p.Stats(); s.Waits == 0 || s.Evictions == 0 || s.InFlight != 0 {
		t.Errorf("%+v: expected waits and evictions, and nothing left in flight", s)
	}
}
