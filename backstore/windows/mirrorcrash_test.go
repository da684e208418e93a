package windows

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/memstore"
	"lunar/internal/eventually"
)

const crashSize = 8 << 20

// whole waits until both members are alike, as long as it takes while that goes on: on a machine
// with much else to do it takes minutes.
func whole(t testing.TB, m *Mirror) {
	t.Helper()
	for left := m.Status().Behind; left > 0; {
		was := left
		eventually.Holds(t, fmt.Sprintf("a member lacks fewer regions than %d", was), func() bool {
			left = m.Status().Behind
			return left < was
		})
	}
	eventually.Finds(t, "members that lag", false, m.lags)
}

// bytesOf reads all of a store.
func bytesOf(t testing.TB, s backstore.Store) (all []byte) {
	t.Helper()
	c := backstoretest.NewClient(t, s, backstoretest.NewLoop(t, false))
	for off := int64(0); off < crashSize; off += 1 << 20 {
		all = append(all, c.Read(t.(backstoretest.Fataler), off, 1<<20)...)
	}
	return all
}

// restarted opens a mirror of what a cut has left and returns its bytes, which both
// members have in the end. Sometimes the power is cut again meanwhile.
func restarted(t *testing.T, rng *rand.Rand, left []*memstore.Store, missing int) (all []byte) {
	t.Helper()
	t.Run("restart", func(t *testing.T) {
		p := newPower(rng.Uint64(), left...)
		c := mirrorOf(p.stores[0], p.stores[1], p.stores[2])
		if missing >= 0 {
			c.Members[missing].Open = never
		}
		m, err := OpenMirror(c)
		if err != nil {
			if missing < 0 {
				t.Fatal(err)
			}
			return // it says that data would be missing
		}
		defer func() {
			if err := m.Close(); err != nil {
				t.Error(err)
			}
			if missing < 0 && !t.Failed() && !bytes.Equal(left[0].Bytes()[:crashSize], left[1].Bytes()[:crashSize]) {
				t.Error("the members differ after a stop in order")
			}
		}()
		t.Run("read", func(t *testing.T) { all = bytesOf(t, m) })
		if missing < 0 && rng.IntN(2) == 0 {
			again := p.now()
			t.Run("again", func(t *testing.T) {
				if second := restarted(t, rng, again, -1); !bytes.Equal(second, all) {
					t.Error("a second cut has changed the data")
				}
			})
		}
		if missing < 0 {
			whole(t, m)
			t.Run("alike", func(t *testing.T) {
				if !bytes.Equal(bytesOf(t, m), all) {
					t.Error("the data changed while members were made alike")
				}
			})
		}
	})
	return all
}

// TestMirrorAfterPowerCuts: whenever the power goes, every sector has what was promised,
// and both members the same in the end.
func TestMirrorAfterPowerCuts(t *testing.T) {
	for seed := range seeds(3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 9))
			p := newPower(seed<<32, mem(t, crashSize), mem(t, crashSize), mem(t, MapSize))
			m := openMirror(t, mirrorOf(p.stores[0], p.stores[1], p.stores[2]))
			t.Cleanup(func() {
				if err := m.Close(); err != nil {
					t.Error(err)
				}
			})
			if seed%2 == 0 {
				whole(t, m) // else some cuts come before the members are alike
			}
			w := resized(t, m, crashSize, seed, 4)
			for range 6 {
				missing := rng.IntN(6) - 4 // mostly none
				if err := w.ledger.Cut(func() []byte {
					left := p.after(t, 1+rng.IntN(60))
					if missing >= 0 {
						if all := restarted(t, rng, left, missing); all != nil {
							return all
						}
					}
					return restarted(t, rng, left, -1)
				}); err != nil {
					t.Error(err)
				}
			}
			if err := w.stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestMirrorWithoutAMember: a member that fails is dropped without an error for anybody,
// whoever it is, and gets what it lacks when it is back.
func TestMirrorWithoutAMember(t *testing.T) {
	for seed := range seeds(3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 10))
			p := newPower(seed<<32, mem(t, crashSize), mem(t, crashSize), mem(t, MapSize))
			c := mirrorOf(p.stores[0], p.stores[1], p.stores[2])
			c.Window = 30 * time.Millisecond
			m := openMirror(t, c)
			t.Cleanup(func() {
				if err := m.Close(); err != nil {
					t.Error(err)
				}
				if !bytes.Equal(p.stores[0].Bytes(), p.stores[1].Bytes()) {
					t.Error("the members differ after a stop in order")
				}
			})
			whole(t, m)
			w := work(t, m, crashSize, seed, 4)
			for round := range 2 {
				victim := rng.IntN(2)
				name := m.config.Members[victim].Name
				p.stores[victim].breaks(true)
				eventually.Finds(t, "the member that is missing", name, func() string { return m.Status().Missing })
				if err := w.ledger.Cut(func() []byte {
					left := p.after(t, 1+rng.IntN(60))
					return restarted(t, rng, left, -1)
				}); err != nil {
					t.Errorf("round %d without %s: %v", round, name, err)
				}
				p.stores[victim].breaks(false)
				if _, err := m.Rejoin(context.Background()); err != nil {
					t.Fatal(err)
				}
				if err := w.ledger.Cut(func() []byte {
					return restarted(t, rng, p.after(t, 1+rng.IntN(200)), -1)
				}); err != nil {
					t.Errorf("round %d, %s is back: %v", round, name, err)
				}
				whole(t, m)
			}
			if err := w.stop(); err != nil {
				t.Error(err)
			}
		})
	}
}
