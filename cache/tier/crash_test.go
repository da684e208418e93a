package tier

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/errstore"
	"lunar/backstore/memstore"
)

// sectors is how many a volume under power cuts has.
const sectors = span / sector

// cuts is a volume from which the power is taken while it is in use.
type cuts struct {
	subject subject
	faults  *errstore.Store
	ledger  *backstoretest.Ledger
}

// newCuts wraps a store that has lost nothing yet.
func newCuts(t *testing.T, name string, s setup) *cuts {
	s.volume.Age, s.volume.Retry, s.volume.DirtyLimit = 100*time.Microsecond, time.Millisecond, 64<<10
	lower, err := memstore.New(memstore.Config{Size: span})
	if err != nil {
		t.Fatal(err)
	}
	slow := &jitter{Store: lower}
	c := &cuts{faults: errstore.Wrap(slow), ledger: backstoretest.NewLedger(sectors)}
	c.subject = newSubjectOver(t, name, s, lower, c.faults, slow.idle)
	return c
}

// cut takes the power away and looks at what is left.
func (c *cuts) cut(seed uint64) error {
	return c.ledger.Cut(func() []byte { return c.subject.lower.CrashClone(seed).Bytes() })
}

// promiser is one user of the volume. Of its sectors, every run of run ones in
// stride, it knows what was promised.
type promiser struct {
	*cuts
	client           *backstoretest.Client
	first, run, step int
	random           *rand.Rand
}

// draw returns a range of the user's sectors.
func (p *promiser) draw() (first, n int) {
	start := p.first + p.step*p.random.IntN((sectors-p.first+p.step-1)/p.step)
	end := min(start+p.run, sectors)
	first = start + p.random.IntN(end-start)
	return first, 1 + p.random.IntN(min(end-first, 40))
}

// do performs a random operation and returns what is wrong with its result.
func (p *promiser) do() error {
	first, n := p.draw()
	op := backstore.Op{Off: int64(first) * sector, Len: int64(n) * sector, FUA: p.random.IntN(4) == 0}
	switch p.random.IntN(12) {
	case 0:
		return p.flush()
	case 1:
		return p.flushRange(first, n)
	case 2:
		op.Kind = backstore.Discard
	case 3:
		op.Kind = backstore.WriteZeroes
	case 4, 5, 6:
		return p.read(op, first, n)
	default:
		op.Kind, op.Data = backstore.Write, backstoretest.Buffer(n*sector)
	}
	return p.change(op, first, n)
}

// change makes a version of each sector. That it failed leaves open which one is
// there.
func (p *promiser) change(op backstore.Op, first, n int) error {
	if op.Kind == backstore.Write {
		p.ledger.Write(op.Data, first)
	} else {
		p.ledger.Zero(first, n)
	}
	if err := p.client.Run(&op); err != nil {
		return unless(err, errMedium)
	}
	p.ledger.Acknowledged(first, n, op.FUA)
	return nil
}

// flush makes all that the user was told is done stable.
func (p *promiser) flush() error {
	if err := p.client.Do(backstore.Op{Kind: backstore.Flush}); err != nil {
		return unless(err, errMedium)
	}
	for start := p.first; start < sectors; start += p.step {
		p.ledger.Flushed(start, min(p.run, sectors-start))
	}
	return nil
}

func (p *promiser) flushRange(first, n int) error {
	op := backstore.Op{Kind: backstore.Flush, Off: int64(first) * sector, Len: int64(n) * sector}
	if err := p.client.Do(op); err != nil {
		return unless(err, errMedium)
	}
	p.ledger.Flushed(first, n)
	return nil
}

func (p *promiser) read(op backstore.Op, first, n int) error {
	op.Kind, op.Data = backstore.Read, backstoretest.Buffer(n*sector)
	if err := p.client.Run(&op); err != nil {
		return unless(err, errMedium)
	}
	return p.ledger.Read(op.Data, first)
}

// unless returns err if it is not the expected one.
func unless(err, expected error) error {
	if errors.Is(err, expected) {
		return nil
	}
	return err
}

// trouble lets operations below fail now and then.
func (c *cuts) trouble(random *rand.Rand) {
	rule := errstore.Rule{After: random.IntN(12), Times: 1 + random.IntN(3), Err: errMedium, Done: random.Int64N(40) * sector}
	kinds := [][]backstore.Kind{writes, writes, {backstore.Flush}, {backstore.Discard, backstore.WriteZeroes}, reads}
	rule.Kinds = kinds[random.IntN(len(kinds))]
	c.faults.SetRules(rule)
}

// use lets users work and takes the power away meanwhile.
func (c *cuts) use(t *testing.T, users []*promiser, troubled bool) {
	random := rand.New(rand.NewPCG(*seed, 99))
	var working atomic.Int32
	working.Add(int32(len(users)))
	var group sync.WaitGroup
	for _, p := range users {
		group.Go(func() {
			defer working.Add(-1)
			for range 60 * *effort {
				if err := p.do(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for n := 0; working.Load() > 0 && !t.Failed(); n++ {
		if troubled && n%3 == 0 {
			c.trouble(random)
		}
		if err := c.cut(random.Uint64()); err != nil {
			t.Error(err)
		}
	}
	group.Wait()
	c.faults.SetRules()
}

// users are count promisers whose sectors lie between each other's; one has all.
func (c *cuts) users(t *testing.T, count int) (all []*promiser) {
	run := 11
	if count == 1 {
		run = sectors
	}
	for i := range count {
		all = append(all, &promiser{
			cuts: c, client: newLane(t, &c.subject), first: i * run, run: run, step: count * run,
			random: rand.New(rand.NewPCG(*seed, uint64(i))),
		})
	}
	return all
}

// TestPowerCut: what was flushed or written with FUA survives a power cut at any
// time, whatever the flusher does meanwhile; every other sector holds a version that
// it was given since. It is so with one user who writes anywhere, and with several
// and a store below that fails at times.
func TestPowerCut(t *testing.T) {
	for name, s := range variants {
		for _, count := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s/%d", name, count), func(t *testing.T) {
				t.Logf("-seed %d", *seed)
				c := newCuts(t, name, s)
				users := c.users(t, count)
				c.use(t, users, count > 1)
				for _, p := range users {
					if err := p.flush(); err != nil {
						t.Error(err)
					}
				}
				if err := c.cut(1); err != nil {
					t.Errorf("after a flush of all: %v", err)
				}
			})
		}
	}
}

// Without a promise a power cut does undo writes: the test above can fail.
func TestPowerCutUndoes(t *testing.T) {
	s := newSubject(t, "back", large.with(Back, "lru"), false)
	s.client.Write(t, 0, backstoretest.Pattern(page, 1))
	if s.lower.CrashClone(1).Bytes()[0] != 0 {
		t.Fatal("a write back reached stable media without a flush")
	}
}
