package windows

import (
	"bytes"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/errstore"
	"lunar/backstore/memstore"
	"lunar/internal/evloop"
)

// forgetful is a disk that loses what it has when a flush fails, and works again after that.
type forgetful struct {
	*memstore.Store
	fails atomic.Int32 // flushes
}

// Lane implements backstore.Store.
func (f *forgetful) Lane(l *evloop.Loop) (backstore.Lane, error) {
	inner, err := f.Store.Lane(l)
	return &forgetfulLane{inner, f}, err
}

type forgetfulLane struct {
	backstore.Lane
	disk *forgetful
}

// TryNow implements backstore.Lane.
func (l *forgetfulLane) TryNow(op *backstore.Op) bool {
	if op.Kind != backstore.Flush || l.disk.fails.Load() == 0 {
		return l.Lane.TryNow(op)
	}
	l.disk.fails.Add(-1)
	l.Lane.TryNow(&backstore.Op{Kind: backstore.WriteZeroes, FUA: true, Len: crashSize})
	op.Err = errBroken
	return true
}

// TestFlushThatLosesData: a member whose flush has failed is not taken for whole because the next
// flush ends well: what it was given may be gone.
func TestFlushThatLosesData(t *testing.T) {
	old, next := backstoretest.Pattern(4096, 1), backstoretest.Pattern(4096, 2)
	for name, change := range map[string]func(m *Mirror, leader, chart *errstore.Store, k *backstoretest.Client){
		"at rest": func(m *Mirror, _, _ *errstore.Store, _ *backstoretest.Client) {
			_ = m.quieten()
			_ = m.quieten()
		},
		"an exchange that the map cannot take": func(m *Mirror, _, chart *errstore.Store, _ *backstoretest.Client) {
			chart.SetRules(errstore.Rule{Kinds: []backstore.Kind{backstore.Write}, Times: 1, Err: errBroken})
			if err := m.exchange(); !errors.Is(err, errBroken) {
				t.Errorf("found %v, expected that the map fails", err)
			}
		},
		"instead of a leader that fails": func(m *Mirror, leader, _ *errstore.Store, k *backstoretest.Client) {
			leader.SetRules(errstore.Rule{Kinds: []backstore.Kind{backstore.Write}, Err: errBroken})
			write := backstore.Op{Kind: backstore.Write, Off: 1 << 20, Data: next}
			if err := k.Do(write); !errors.Is(err, errBroken) {
				t.Errorf("found %v, expected that both members fail", err)
			}
			_ = k.Do(write) // by whom it can
		},
	} {
		t.Run(name, func(t *testing.T) {
			leader, other, chart := errstore.Wrap(mem(t, crashSize)), &forgetful{Store: mem(t, crashSize)}, errstore.Wrap(mem(t, MapSize))
			c := mirrorOf(leader, other, chart)
			c.Window = time.Hour
			m := openMirror(t, c)
			t.Cleanup(func() { _ = m.Close() })
			m.poke()
			whole(t, m)
			k := backstoretest.NewClient(t, m, backstoretest.NewLoop(t, false))
			k.Write(t, 0, old)
			other.fails.Store(1)
			change(m, leader, chart, k)
			whole(t, m)
			if got := k.Read(t, 0, 4096); !bytes.Equal(got, old) {
				t.Error("what was acknowledged is gone")
			}
		})
	}
}

// TestFlushesThatFailTogether: a member that lost what was copied to it, while the other one could
// not be flushed either, gets it again.
func TestFlushesThatFailTogether(t *testing.T) {
	a, other := mem(t, crashSize), &forgetful{Store: mem(t, crashSize)}
	data := backstoretest.Pattern(4096, 1)
	k := backstoretest.NewClient(t, a, backstoretest.NewLoop(t, false))
	k.Write(t, 0, data)
	other.fails.Store(1)
	leader := errstore.Wrap(a, errstore.Rule{Kinds: []backstore.Kind{backstore.Flush}, Times: 1, Err: errBroken})
	m := openMirror(t, mirrorOf(leader, other, mem(t, MapSize)))
	t.Cleanup(func() { _ = m.Close() })
	whole(t, m)
	if !bytes.Equal(other.Bytes()[:4096], data) {
		t.Error("a member is taken for whole that has lost its data")
	}
}
