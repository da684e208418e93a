package bulk_test

import (
	"bytes"
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/internal/bulk"
	"lunar/internal/evloop"
	"lunar/internal/pipeline"
	"lunar/internal/pipeline/rftp"
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

// twice is a link that damages the first two frames of a block. heard gets a value when what the
// receiver says of one of them was taken in.
type twice struct {
	bulk.SourceLink
	block int64
	sent  atomic.Int64
	heard chan struct{}
	told  bool // the last message said so
}

func (l *twice) Write(b *pipeline.Block, frame []byte, c rftp.Credit, done func(error)) {
	if b.Offset == l.block*mib && l.sent.Add(1) <= 2 {
		frame[100] ^= 1
	}
	l.SourceLink.Write(b, frame, c, done)
}

func (l *twice) Receive() (rftp.Message, error) {
	if l.told {
		l.heard <- struct{}{}
	}
	m, err := l.SourceLink.Receive()
	l.told = err == nil && m.Type == rftp.BlockAgain
	return m, err
}

// TestDamagedTwice: a block of which two forms were damaged is sent again once.
func TestDamagedTwice(t *testing.T) {
	const size, block = 40 * mib, 7
	from, to := newMedium(t, size), newSide(t, size)
	for n := range bulk.Blocks(size) {
		from.write(t, n*mib, backstoretest.Pattern(mib, uint64(n)))
	}
	link := &twice{SourceLink: dial(t, to), block: block, heard: make(chan struct{}, 2)}
	o, asked := origin(from), 0
	o.Changed = func() (blocks []int64) {
		if asked++; asked > 2 {
			return nil
		}
		<-link.heard
		for n := int64(0); asked == 1 && n < 33; n++ { // more than are left to the last pass
			blocks = append(blocks, n)
		}
		return blocks
	}
	o.Hold = func(ctx context.Context, last func(context.Context, *bulk.Volume) error) error {
		return last(ctx, from.volume)
	}
	received := to.receive(t.Context())
	sent, err := bulk.Send(t.Context(), link, o, bulk.Options{Channels: 1, Cores: 1})
	if r := <-received; err != nil || r.err != nil || r.Damaged != 2 || sent.Again != 2 || !bytes.Equal(from.contents(t), to.contents(t)) {
		t.Fatalf("sent: %+v, %v; received: %+v, %v", sent, err, r.Received, r.err)
	}
	if n := link.sent.Load(); n != 3 {
		t.Errorf("the block was sent %d times, expected 3", n)
	}
}
