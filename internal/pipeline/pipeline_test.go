package pipeline

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestTablesAreExact: what a table does not say is an error, and leaves the state.
func TestTablesAreExact(t *testing.T) {
	for _, c := range []struct {
		name  string
		table *Table
		known []Transition
	}{
		{"source", Source, []Transition{
			{Free, Take, Loading}, {Loading, Fill, Loaded}, {Loading, Release, Free}, {Loaded, Queue, CPUWait}, {CPUWait, Process, Processed},
			{Processed, Queue, CPUWait}, {CPUWait, Release, Free}, {Processed, Release, Free}, {Loaded, Post, NetWait}, {Processed, Post, NetWait},
			{NetWait, Complete, Sent}, {NetWait, Fail, Loaded}, {Sent, Release, Free},
		}},
		{"sink", Sink, []Transition{
			{Free, Take, NetWait}, {NetWait, Fill, Arrived}, {NetWait, Release, Free}, {Arrived, Queue, CPUWait}, {CPUWait, Process, Processed},
			{Processed, Queue, CPUWait}, {CPUWait, Release, Free}, {Arrived, Store, StoreWait}, {Processed, Store, StoreWait}, {StoreWait, Release, Free},
		}},
	} {
		for s := range states + 1 {
			for e := range events + 1 {
				want := slices.IndexFunc(c.known, func(x Transition) bool { return x.From == s && x.On == e })
				b := &Block{State: s}
				err := b.Do(c.table, e)
				switch {
				case want < 0 && (err == nil || b.State != s):
					t.Errorf("%s: state %d, event %d: found state %d and error %v, expected an error", c.name, s, e, b.State, err)
				case want >= 0 && (err != nil || b.State != c.known[want].To):
					t.Errorf("%s: %v on %v: found %v and error %v, expected %v", c.name, s, e, b.State, err, c.known[want].To)
				}
				if s == states || e == events {
					break // their names are not
				}
			}
		}
	}
}

// TestOrder: blocks that arrive 3, 1, 2, 5, 4 are given out as -, 1, (2, 3), -, (4, 5).
func TestOrder(t *testing.T) {
	o := Order{next: 1}
	want := [][]uint64{nil, {1}, {2, 3}, nil, {4, 5}}
	for i, seq := range []uint64{3, 1, 2, 5, 4} {
		due, taken := o.Arrive(&Block{Sequence: seq})
		var found []uint64
		for _, b := range due {
			found = append(found, b.Sequence)
		}
		if !taken || !slices.Equal(found, want[i]) {
			t.Errorf("arrival of %d: found %v, expected %v", seq, found, want[i])
		}
	}
	if _, taken := o.Arrive(&Block{Sequence: 2}); taken || o.Pending() != 0 {
		t.Error("a block was taken twice")
	}
}

// TestLastStageStops: with queues of 4, three stages and a pool of 16, the last stage has 4
// blocks in its queue and 1 in hand, the one before 4 and its threads', the rest are free
// or loaded, and always 16 in all.
func TestLastStageStops(t *testing.T) {
	const pool, threads = 16, 2
	l := NewLine(StageConfig{Bound: 4, Threads: 1}, StageConfig{Bound: 4, Threads: threads}, StageConfig{Bound: 4, Threads: 1})
	free := pool
	all := func() (n int) {
		for i := range l.Stages() {
			n += l.Queued(i) + l.InHand(i)
		}
		return n + free
	}
	for now := range int64(100) {
		for free > 0 && l.Offer(0, &Block{}, now) {
			free--
		}
		for i := range l.Stages() {
			if b := l.Take(i, now); b != nil && i < 2 {
				l.Done(i, b, now)
			}
		}
		if all() != pool {
			t.Fatalf("found %d blocks, expected %d", all(), pool)
		}
	}
	if l.Queued(2) != 4 || l.InHand(2) != 1 || l.Queued(1) != 4 || l.InHand(1) != threads || l.Queued(0)+l.InHand(0)+free != 5 {
		t.Errorf("found %+v, free %d", l.stages, free)
	}
}

// TestAdapt: one stage gets a thread, if a core is spare, and those with too many lose one.
func TestAdapt(t *testing.T) {
	const ms = time.Millisecond
	stage := func(threads int, rate float64, service, delay time.Duration) Sample {
		return Sample{Kind: Parallel, Threads: threads, Rate: rate, Service: service, Delay: delay}
	}
	for _, c := range []struct {
		name   string
		stages []Sample
		cores  int
		want   []int
	}{
		{"the largest delay", []Sample{stage(1, 160, 6*ms, 9*ms), stage(1, 120, 8*ms, 20*ms)}, 8, []int{1, 2}},
		{"of equals the last", []Sample{stage(1, 160, 6*ms, 20*ms), stage(1, 120, 8*ms, 20*ms)}, 8, []int{1, 2}},
		{"not one whose threads wait for the next", []Sample{stage(2, 250, 6*ms, 17*ms), stage(2, 250, 8*ms, 16*ms)}, 8, []int{2, 3}},
		{"a delay that is not above the service time", []Sample{stage(1, 125, 8*ms, 8*ms)}, 8, []int{1}},
		{"no spare core", []Sample{stage(1, 160, 6*ms, 9*ms), stage(1, 120, 8*ms, 20*ms)}, 2, []int{1, 1}},
		{"too many threads", []Sample{stage(4, 200, 10*ms, 0)}, 8, []int{3}},
		{"just enough", []Sample{stage(4, 210, 10*ms, 0)}, 8, []int{4}},
		{"never none", []Sample{stage(1, 0, 0, 0)}, 8, []int{1}},
		{"stages of events stay", []Sample{{Kind: Events, Threads: 8, Rate: 1, Service: ms, Delay: 99 * ms}}, 8, []int{8}},
	} {
		if got := Adapt(c.stages, c.cores); !slices.Equal(got, c.want) {
			t.Errorf("%s: found %v, expected %v", c.name, got, c.want)
		}
	}
}

// TestRunner: every block passes every stage, whatever ends when, and comes out.
func TestRunner(t *testing.T) {
	var passed [3]atomic.Int64
	work := func(i int) func(*Block) (bool, error) {
		return func(b *Block) (bool, error) {
			passed[i].Add(1)
			return b.Sequence%10 != 3 || i != 1, nil // some leave in the middle
		}
	}
	var mu sync.Mutex
	out := map[uint64]int{}
	free := make(chan *Block, 8)
	tick := make(chan time.Time)
	r := Start(Config{
		Stages: []Stage{
			{StageConfig: StageConfig{Kind: Events, Bound: 2, Threads: 4}, Begin: func(b *Block, done func(bool, error)) {
				go func() { done(work(0)(b)) }()
			}},
			{StageConfig: StageConfig{Kind: Parallel, Bound: 2, Threads: 2}, Work: work(1)},
			{StageConfig: StageConfig{Kind: Hybrid, Bound: 2, Threads: 1}, Work: work(2)},
		},
		Cores: 4, Nice: true, Tick: tick,
		Out: func(b *Block) {
			mu.Lock()
			out[b.Sequence]++
			mu.Unlock()
			free <- b
		},
	})
	for i := range cap(free) {
		free <- &Block{Index: i}
	}
	const blocks = 1000
	for i := range uint64(blocks) {
		b := <-free
		b.Sequence = i
		if err := r.Put(b); err != nil {
			t.Fatal(err)
		}
		if i%100 == 0 {
			tick <- time.Time{}
		}
	}
	if err := r.Wait(); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	for i := range uint64(blocks) {
		if out[i] != 1 {
			t.Errorf("block %d came out %d times", i, out[i])
		}
	}
	if passed[0].Load() != blocks || passed[1].Load() != blocks || passed[2].Load() != blocks*9/10 {
		t.Errorf("found %v %v %v passages", passed[0].Load(), passed[1].Load(), passed[2].Load())
	}
}

// TestRunnerFails: after an error nothing more begins, who puts hears of it, and every block
// that the line took comes out.
func TestRunnerFails(t *testing.T) {
	broken := errors.New("broken")
	var out atomic.Int64
	r := Start(Config{
		Stages: []Stage{
			{StageConfig: StageConfig{Kind: Parallel, Bound: 1, Threads: 1}, Work: func(*Block) (bool, error) { return true, nil }},
			{StageConfig: StageConfig{Kind: Hybrid, Bound: 1, Threads: 1}, Work: func(b *Block) (bool, error) {
				if b.Sequence == 5 {
					return false, broken
				}
				return true, nil
			}},
		},
		Out: func(*Block) { out.Add(1) },
	})
	var err error
	put := int64(0)
	for i := uint64(0); err == nil && i < 100; i++ {
		if err = r.Put(&Block{Sequence: i}); err == nil {
			put++
		}
	}
	if !errors.Is(err, broken) || !errors.Is(r.Wait(), broken) {
		t.Errorf("found %v, expected %v", err, broken)
	}
	if out.Load() != put {
		t.Errorf("found %d blocks out, expected %d", out.Load(), put)
	}
}

// TestRunnerWaitsForOut: when Wait returns, blocks whose operations end elsewhere are out.
func TestRunnerWaitsForOut(t *testing.T) {
	var out atomic.Bool
	r := Start(Config{
		Stages: []Stage{{StageConfig: StageConfig{Name: "store", Kind: Events, Bound: 1, Threads: 1}, Begin: func(_ *Block, done func(bool, error)) {
			go done(true, nil)
		}}},
		Out: func(*Block) {
			for range 10_000 { // Wait could return meanwhile
				runtime.Gosched()
			}
			out.Store(true)
		},
	})
	if err := r.Put(&Block{}); err != nil {
		t.Fatal(err)
	}
	if err := r.Wait(); err != nil || !out.Load() {
		t.Errorf("error %v, and the block is out: %t", err, out.Load())
	}
}

// TestPool: blocks have memory of their own.
func TestPool(t *testing.T) {
	p, err := NewPool(3, 4096)
	if err != nil {
		t.Fatal(err)
	}
	for i, b := range p.Blocks {
		b.Memory[0] = byte(i + 1)
	}
	if p.Bytes()[0] != 1 || p.Bytes()[4096] != 2 || p.Bytes()[8192] != 3 || p.Blocks[2].Index != 2 {
		t.Error("the memory of blocks is not one behind the other")
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}
