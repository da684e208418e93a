package bulk_test

import (
	"bytes"
	"strings"
	"sync/atomic"
	"testing"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/internal/bulk"
	"lunar/internal/evloop"
)

// faulty is a store that returns something else than was stored at an offset, some times.
type faulty struct {
	backstore.Store
	off   int64
	times atomic.Int64
}

func (s *faulty) Lane(loop *evloop.Loop) (backstore.Lane, error) {
	lane, err := s.Store.Lane(loop)
	return &faultyLane{lane, s}, err
}

type faultyLane struct {
	backstore.Lane
	store *faulty
}

func (l *faultyLane) TryNow(op *backstore.Op) bool { return l.alter(op, l.Lane.TryNow(op)) }
func (l *faultyLane) Submit(op *backstore.Op) bool { return l.alter(op, l.Lane.Submit(op)) }

func (l *faultyLane) alter(op *backstore.Op, done bool) bool {
	if done && op.Kind == backstore.Read && op.Off == l.store.off && l.store.times.Add(-1) >= 0 {
		op.Data[7] ^= 1
	}
	return done
}

// TestReadAgain: a medium that returns something else than was stored is noticed at once,
// and the next move stores that block alone.
func TestReadAgain(t *testing.T) {
	const size = 12 * mib
	from, to := newMedium(t, size), newSide(t, size)
	for n := range bulk.Blocks(size) {
		from.write(t, n*mib, backstoretest.Pattern(mib, uint64(n)))
	}
	err := to.slot.Exchange(t.Context(), func(s backstore.Store) (backstore.Store, error) {
		f := &faulty{Store: s, off: 3 * mib}
		f.times.Store(1)
		return f, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	received := to.receive(t.Context())
	_, err = bulk.Send(t.Context(), dial(t, to), origin(from), bulk.Options{Channels: 2, Cores: 2})
	r := <-received
	if err == nil || r.err == nil || !strings.Contains(r.err.Error(), "block at 3145728: found another one than was stored") {
		t.Fatalf("found %v and %v", err, r.err)
	}
	if _, again := move(t, from, to, origin(from)); again.Kept != r.Stored || again.Stored != 12-r.Stored || again.Repeated != 0 {
		t.Errorf("found %+v after %+v", again, r.Received)
	}
}

// TestStoredNotNoted: what a receiver that was killed had stored, and not noted, is found at
// the end where the sender has zeroes, and the next move mends it.
func TestStoredNotNoted(t *testing.T) {
	const size = 6 * mib
	from, to := newMedium(t, size), newSide(t, size)
	from.write(t, 0, backstoretest.Pattern(mib, 1))
	to.write(t, 3*mib, backstoretest.Pattern(4096, 2))
	received := to.receive(t.Context())
	_, err := bulk.Send(t.Context(), dial(t, to), origin(from), bulk.Options{Channels: 1, Cores: 1})
	if r := <-received; err == nil || r.err == nil {
		t.Fatalf("found %v and %v, expected that it is noticed", err, r.err)
	}
	if _, r := move(t, from, to, origin(from)); r.Stored != 1 || r.Kept != 1 || !bytes.Equal(from.contents(t), to.contents(t)) {
		t.Errorf("found %+v", r)
	}
}
