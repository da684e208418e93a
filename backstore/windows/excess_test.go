package windows

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/errstore"
	"lunar/backstore/memstore"
	"lunar/internal/eventually"
	"lunar/internal/racetest"
)

func excessOf(slow, fast backstore.Store) ExcessConfig {
	return ExcessConfig{Name: "v", Slow: known{slow, 1}, Fast: fast, Writes: 1, Window: time.Millisecond}
}

// known is a store that tells which one it is.
type known struct {
	backstore.Store
	serial uint64
}

// Medium is as that of files and devices.
func (k known) Medium() [3]uint64 { return [3]uint64{k.serial} }

// Resize implements backstore.Resizer.
func (k known) Resize(size int64) error { return backstore.Resize(k.Store, size) }

func openExcess(t testing.TB, c ExcessConfig) *Excess {
	t.Helper()
	x, err := OpenExcess(c)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// seeds are so many, or one with the race detector: what is compared are images.
func seeds(n uint64) uint64 {
	if racetest.Enabled {
		return 1
	}
	return n
}

// TestExcessConforms: a store with a fast device is a store like any other, whatever part
// of the writes goes there.
func TestExcessConforms(t *testing.T) {
	for name, change := range map[string]func(*ExcessConfig){
		"all go to the log": func(c *ExcessConfig) { c.Large = 1 << 40; c.Window = time.Hour },
		"some do":           func(c *ExcessConfig) { c.Writes = 0 },
		"small ones do":     func(c *ExcessConfig) { c.Large = 64 << 10 },
	} {
		t.Run(name, func(t *testing.T) {
			backstoretest.Run(t, backstoretest.Subject{Open: func(t *testing.T) backstore.Store {
				c := excessOf(memory(t, backstoretest.Size, true), memory(t, ExcessLeast, true))
				change(&c)
				return openExcess(t, c)
			}})
		})
	}
}

// reopened opens what a cut has left and returns the bytes, which are the slow device's
// after a stop in order. Sometimes the power is cut again meanwhile.
func reopened(t *testing.T, rng *rand.Rand, left []*memstore.Store) (all []byte) {
	t.Helper()
	t.Run("restart", func(t *testing.T) {
		p := newPower(rng.Uint64(), left...)
		x := openExcess(t, excessOf(p.stores[0], p.stores[1]))
		t.Run("read", func(t *testing.T) { all = bytesOf(t, x) })
		if rng.IntN(2) == 0 {
			again := p.now()
			t.Run("again", func(t *testing.T) {
				if second := reopened(t, rng, again); !bytes.Equal(second, all) {
					t.Error("a second cut has changed the data")
				}
			})
		}
		if err := x.Close(); err != nil {
			t.Error(err)
		}
		if !bytes.Equal(left[0].Bytes()[:crashSize], all) {
			t.Error("the slow device has other data after a stop in order")
		}
		if left[0].Unstable() > 0 {
			t.Error("the slow device was not flushed")
		}
	})
	return all
}

// TestExcessAfterPowerCuts: whenever the power goes, every sector has what was promised.
func TestExcessAfterPowerCuts(t *testing.T) {
	for seed := range seeds(3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 11))
			p := newPower(seed<<32, mem(t, crashSize), mem(t, ExcessLeast))
			c := excessOf(p.stores[0], p.stores[1])
			c.Writes = int64(seed % 3)
			c.Large = int64(seed%2) * 4096
			x := openExcess(t, c)
			t.Cleanup(func() {
				if err := x.Close(); err != nil {
					t.Error(err)
				}
			})
			w := resized(t, x, crashSize, seed, 4)
			for range 6 {
				if err := w.ledger.Cut(func() []byte { return reopened(t, rng, p.after(t, 1+rng.IntN(300))) }); err != nil {
					t.Error(err)
				}
			}
			if err := w.stop(); err != nil {
				t.Error(err)
			}
			s := x.Status()
			if s.Fast == 0 || s.Back == 0 {
				t.Errorf("nothing was to be tested: %+v", s)
			}
		})
	}
}

// TestExcessWhileTheFastDeviceFails: what failed there does not come back over what was
// written since.
func TestExcessWhileTheFastDeviceFails(t *testing.T) {
	for seed := range seeds(2) {
		rng := rand.New(rand.NewPCG(seed, 12))
		p := newPower(seed<<32, mem(t, crashSize), mem(t, ExcessLeast))
		x := openExcess(t, excessOf(p.stores[0], p.stores[1]))
		w := work(t, x, crashSize, seed, 4)
		for range 2 {
			p.stores[1].breaks(true)
			eventually.Holds(t, "the failure is told", func() bool { return len(x.Troubles()) > 0 })
			p.stores[1].breaks(false)
			if err := w.ledger.Cut(func() []byte { return reopened(t, rng, p.after(t, 1+rng.IntN(300))) }); err != nil {
				t.Error(err)
			}
		}
		if err := w.stop(); err != nil {
			t.Error(err)
		}
		t.Cleanup(func() {
			if err := x.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestExcessTellsOfFlushesBeside: when a flush of the background fails, whoever flushes next is told:
// the device may have lost what it had acknowledged to others, and says so once.
func TestExcessTellsOfFlushesBeside(t *testing.T) {
	slow := errstore.Wrap(memory(t, backstoretest.Size, true))
	c := excessOf(slow, memory(t, ExcessLeast, true))
	c.Window, c.Large = time.Hour, 64<<10
	x := openExcess(t, c)
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	client := backstoretest.NewClient(t, x, backstoretest.NewLoop(t, true))
	for off, n := range map[int64]int{0: 128 << 10, 256 << 10: 4096} {
		client.Must(t, backstore.Op{Kind: backstore.Write, Off: off, Data: backstoretest.Pattern(n, 1)})
	}
	slow.SetRules(errstore.Rule{Kinds: []backstore.Kind{backstore.Flush}, Err: errBroken, Times: 1})
	if err := x.writeBack(func() bool { return true }); !errors.Is(err, errBroken) {
		t.Fatalf("found %v, expected that the flush fails", err)
	}
	if err := client.Do(backstore.Op{Kind: backstore.Flush}); !errors.Is(err, errBroken) {
		t.Errorf("found %v, expected the error of the flush before", err)
	}
	client.Must(t, backstore.Op{Kind: backstore.Flush})
}

// TestExcessRefuses: what is no fast device of this volume stays as it is.
func TestExcessRefuses(t *testing.T) {
	fresh := func() (*memstore.Store, [16]byte) {
		x, fast := logged(t, 1)
		id := x.Identity()
		left := fast.CrashClone(1)
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		return left, id
	}
	for name, change := range map[string]func(*ExcessConfig, *memstore.Store){
		"another volume's": func(c *ExcessConfig, _ *memstore.Store) { c.Identity[3] ^= 1 },
		"an empty one":     func(c *ExcessConfig, _ *memstore.Store) { c.Fast = mem(t, ExcessLeast) },
		"a smaller volume": func(c *ExcessConfig, _ *memstore.Store) { c.Slow = known{mem(t, crashSize/2), 1} },
		"another device": func(c *ExcessConfig, _ *memstore.Store) {
			c.Slow, c.Identity = known{mem(t, crashSize), 2}, [16]byte{}
		},
		"a small one":       func(c *ExcessConfig, _ *memstore.Store) { c.Fast = mem(t, 1<<20) },
		"something else":    func(_ *ExcessConfig, f *memstore.Store) { put(t, f, 0, []byte("a file system")) },
		"a damaged label":   func(_ *ExcessConfig, f *memstore.Store) { put(t, f, labelGenerationAt, []byte{9}) },
		"a damaged segment": func(_ *ExcessConfig, f *memstore.Store) { put(t, f, page+labelSizeAt, []byte{9}) },
	} {
		fast, id := fresh()
		c := excessOf(mem(t, crashSize), fast)
		c.Identity = id
		change(&c, fast)
		before := c.Fast.(*memstore.Store).Bytes()
		if x, err := OpenExcess(c); err == nil {
			t.Errorf("%s was opened", name)
			_ = x.Close()
		}
		if !bytes.Equal(before, c.Fast.(*memstore.Store).Bytes()) {
			t.Errorf("%s was changed", name)
		}
	}
}

// put changes bytes of a sector.
func put(t *testing.T, s *memstore.Store, off int64, b []byte) {
	t.Helper()
	c := backstoretest.NewClient(t, s, backstoretest.NewLoop(t, false))
	from := off / memstore.Sector * memstore.Sector
	data := c.Read(t, from, memstore.Sector)
	copy(data[off-from:], b)
	c.Write(t, from, data)
	c.Must(t, backstore.Op{Kind: backstore.Flush})
}

// TestReadOfTwoParts: a read whose first half is in the log is one result.
func TestReadOfTwoParts(t *testing.T) {
	c := excessOf(mem(t, crashSize), mem(t, ExcessLeast))
	c.Window = time.Hour // one write goes to the slow device
	x := openExcess(t, c)
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	k := backstoretest.NewClient(t, x, backstoretest.NewLoop(t, false))
	all := backstoretest.Pattern(8192, 1)
	k.Write(t, 0, all)
	half := backstoretest.Pattern(4096, 2)
	k.Write(t, 0, half)
	if s := x.Status(); s.Slow != 1 || s.Fast != 1 || s.Held != 4096 {
		t.Fatalf("%+v, expected one write on each device", s)
	}
	copy(all, half)
	if got := k.Read(t, 0, 8192); !bytes.Equal(got, all) {
		t.Error("the read returned something else than was written")
	}
}
