package tier

import (
	"slices"
	"sync"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/internal/evloop"
)

// recorder notes what is written to a store.
type recorder struct {
	backstore.Store
	mu     sync.Mutex
	writes []backstore.Op
}

type recordingLane struct {
	backstore.Lane
	*recorder
}

func (r *recorder) Lane(l *evloop.Loop) (backstore.Lane, error) {
	lane, err := r.Store.Lane(l)
	return recordingLane{lane, r}, err
}

func (l recordingLane) TryNow(op *backstore.Op) bool {
	done := l.Lane.TryNow(op)
	if done && op.Kind == backstore.Write {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.writes = append(l.writes, backstore.Op{Off: op.Off, Len: op.Length(), FUA: op.FUA, Atomic: op.Atomic})
	}
	return done
}

// TestAtomicWrite: it goes below as a whole, and what is dirty in its blocks goes
// there first: after a crash it would be written over a part of the new data.
func TestAtomicWrite(t *testing.T) {
	for _, policy := range []Policy{Through, Back} {
		s := large.with(policy, "lru")
		s.volume.Age = time.Hour
		lower := &recorder{Store: newMem(t, false)}
		volume, c := s.wrap(t, lower)
		t.Cleanup(func() {
			if err := volume.Close(); err != nil {
				t.Error(err)
			}
		})
		client := backstoretest.NewClient(t, volume, backstoretest.NewLoop(t, false))
		block := int64(s.block)
		client.Write(t, block-page, backstoretest.Pattern(2*page, 1)) // both blocks
		client.Write(t, 5*block, backstoretest.Pattern(page, 2))      // elsewhere
		data := backstoretest.Pattern(4*page, 3)
		client.Must(t, backstore.Op{Kind: backstore.Write, FUA: true, Atomic: true, Off: block - 2*page, Data: data})
		if got := client.Read(t, block-2*page, 4*page); !slices.Equal(got, data) {
			t.Errorf("%v: something else is read back", policy)
		}
		i := slices.IndexFunc(lower.writes, func(op backstore.Op) bool { return op.Atomic })
		if i != len(lower.writes)-1 || lower.writes[i].Len != 4*page || !lower.writes[i].FUA {
			t.Errorf("%v: the store below got %+v", policy, lower.writes)
		}
		if dirty := c.Stats().DirtyBytes; policy == Back && (dirty != page || i == 0) {
			t.Errorf("%d bytes are dirty, after %+v", dirty, lower.writes)
		}
		client.Must(t, backstore.Op{Kind: backstore.Flush})
		client.Must(t, backstore.Op{Kind: backstore.Wipe})
	}
}
