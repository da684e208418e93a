package bulk_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
	"lukechampine.com/blake3"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/errstore"
	"lunar/internal/bulk"
	"lunar/internal/bulk/keyed"
	"lunar/internal/evloop"
	"lunar/internal/pipeline"
	"lunar/internal/pipeline/rftp"
)

const mib = 1 << 20

// medium is a volume in memory with its contents.
type medium struct {
	slot   *backstore.Slot
	volume *bulk.Volume
	client *backstoretest.Client
	size   int64
}

func newMedium(t testing.TB, size int64) *medium {
	t.Helper()
	store, err := backstore.NewRAM(size, 512)
	if err != nil {
		t.Fatal(err)
	}
	m := &medium{slot: backstore.NewSlot(store), size: size}
	loop := backstoretest.NewLoop(t, true)
	t.Cleanup(func() {
		if err := m.slot.Close(); err != nil {
			t.Error(err)
		}
	})
	m.volume = open(t, loop, m.slot)
	m.client = backstoretest.NewClient(t, m.slot, loop)
	return m
}

func open(t testing.TB, loop *evloop.Loop, store backstore.Store) *bulk.Volume {
	t.Helper()
	v, err := bulk.OpenVolume(loop, store)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	return v
}

func (m *medium) write(t testing.TB, off int64, b []byte) {
	t.Helper()
	if err := m.client.Do(backstore.Op{Kind: backstore.Write, Off: off, Data: b}); err != nil {
		t.Fatal(err)
	}
}

// contents is all of it.
func (m *medium) contents(t testing.TB) []byte {
	t.Helper()
	all, part := make([]byte, m.size), backstoretest.Buffer(mib)
	for off := int64(0); off < m.size; off += mib {
		b := part[:min(mib, m.size-off)]
		if err := m.client.Do(backstore.Op{Kind: backstore.Read, Off: off, Data: b}); err != nil {
			t.Fatal(err)
		}
		copy(all[off:], b)
	}
	return all
}

// fill writes two thirds of the blocks.
func (m *medium) fill(t testing.TB, seed uint64) {
	for n := range bulk.Blocks(m.size) {
		if n%3 != 2 {
			m.write(t, n*mib, backstoretest.Pattern(int(min(mib, m.size-n*mib)), seed*1000+uint64(n)))
		}
	}
}

// side is where a volume is received.
type side struct {
	*medium
	path string
	door door
	dial func(testing.TB, keyed.Key) (bulk.SourceLink, error)
	key  keyed.Key
}

// newSide is one over sockets.
func newSide(t testing.TB, size int64) *side {
	t.Helper()
	return newSideOf(t, networks[0], size)
}

func newSideOf(t testing.TB, n network, size int64) *side {
	t.Helper()
	s := &side{medium: newMedium(t, size), path: filepath.Join(t.TempDir(), "journal"), key: keyed.NewKey()}
	s.door, s.dial = n.listen(t, s.key)
	t.Cleanup(func() { _ = s.door.close() })
	return s
}

type outcome struct {
	bulk.Received
	err error
}

// receive takes the next sender's volume.
func (s *side) receive(ctx context.Context) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		link, err := s.door.accept(ctx)
		if err != nil {
			done <- outcome{err: err}
			return
		}
		var j *bulk.Journal
		r, err := bulk.Receive(ctx, link, bulk.Acceptance{Cores: 2, Accept: func(o bulk.Offer) (*bulk.Place, error) {
			if o.Size != s.size {
				return nil, errors.New("found another size")
			}
			if j, err = bulk.OpenJournal(s.path, o.Size); err != nil {
				return nil, err
			}
			return &bulk.Place{Volume: s.volume, Journal: j}, nil
		}})
		if j != nil {
			err = errors.Join(err, j.Close())
		}
		done <- outcome{r, err}
	}()
	return done
}

func dial(t testing.TB, s *side) bulk.SourceLink {
	t.Helper()
	link, err := s.dial(t, s.key)
	if err != nil {
		t.Fatal(err)
	}
	return link
}

func origin(m *medium) *bulk.Origin {
	return &bulk.Origin{Name: "disk", Size: m.size, Unit: 512, Physical: 4096, Volume: m.volume}
}

// move sends a volume once, and both sides succeed.
func move(t testing.TB, from *medium, to *side, o *bulk.Origin) (bulk.Sent, bulk.Received) {
	t.Helper()
	received := to.receive(t.Context())
	sent, err := bulk.Send(t.Context(), dial(t, to), o, bulk.Options{Channels: 2, Cores: 2})
	r := <-received
	if err != nil || r.err != nil {
		t.Fatalf("sent: %v; received: %v", err, r.err)
	}
	if sent.Checksum != r.Checksum || !bytes.Equal(from.contents(t), to.contents(t)) {
		t.Fatal("what was received is not what was sent")
	}
	return sent, r.Received
}

// TestMove: all bytes arrive, zeroes are not sent, a second move sends nothing, and a third
// what has changed.
func TestMove(t *testing.T) { overEach(t, overMove) }

func overMove(t *testing.T, n network) {
	const size = 20*mib + 4096
	from, to := newMedium(t, size), newSideOf(t, n, size)
	from.fill(t, 1)
	sent, received := move(t, from, to, origin(from))
	if sent.Blocks != 21 || sent.Sent != 14 || sent.Same != 7 || received.Stored != 14 || received.Name != "disk" || received.Unit != 512 || received.Physical != 4096 {
		t.Errorf("found %+v and %+v", sent, received)
	}
	if sent, received = move(t, from, to, origin(from)); sent.Sent != 0 || received.Stored != 0 || received.Kept != 14 {
		t.Errorf("the second time: found %+v and %+v", sent, received)
	}
	from.write(t, 5*mib, backstoretest.Pattern(4096, 99))
	from.write(t, 8*mib+4096, backstoretest.Pattern(4096, 98))
	from.write(t, 0, make([]byte, mib))
	if sent, received = move(t, from, to, origin(from)); sent.Sent != 3 || received.Stored != 3 || received.Repeated != 0 {
		t.Errorf("after changes: found %+v and %+v", sent, received)
	}
}

// TestChecksum: a volume has the same checksum wherever it is, which is that of its bytes.
func TestChecksum(t *testing.T) {
	const size = 5*mib + 512
	m := newMedium(t, size)
	m.fill(t, 2)
	found, err := bulk.Checksum(t.Context(), origin(m), 2, &bulk.Progress{})
	if err != nil {
		t.Fatal(err)
	}
	whole, all := blake3.New(32, nil), m.contents(t)
	for off := 0; off < len(all); off += mib {
		sum := blake3.Sum256(all[off:min(off+mib, len(all))])
		whole.Write(sum[:])
	}
	if !bytes.Equal(found[:], whole.Sum(nil)) {
		t.Errorf("found %x, expected %x", found, whole.Sum(nil))
	}
}

// TestBrokenOff: whatever side is broken off, and when, the next move goes on where it was,
// and stores no block twice.
func TestBrokenOff(t *testing.T) { overEach(t, overBrokenOff) }

func overBrokenOff(t *testing.T, n network) {
	const size, seed = 64 * mib, 5
	random := rand.New(rand.NewPCG(seed, 1))
	from, to := newMedium(t, size), newSideOf(t, n, size)
	for n := range bulk.Blocks(size) {
		from.write(t, n*mib, backstoretest.Pattern(mib, uint64(n)))
	}
	stored := int64(0)
	for range 7 {
		ctx, cancel := context.WithCancel(t.Context())
		progress := &bulk.Progress{}
		received := to.receive(ctx)
		link := dial(t, to)
		most := random.Int64N(12)
		var once sync.Once
		sent, err := bulk.Send(ctx, &broken{SourceLink: link, left: most, end: func() { once.Do(cancel) }}, origin(from), bulk.Options{Channels: 2, Cores: 2, Progress: progress})
		r := <-received
		cancel()
		if err == nil || r.err == nil {
			t.Fatalf("seed %d: it was not broken off: %+v", seed, sent)
		}
		if r.Repeated != 0 {
			t.Errorf("seed %d: %d blocks were stored twice", seed, r.Repeated)
		}
		if r.Kept != stored && r.Kept != 0 { // 0: it had not begun
			t.Errorf("seed %d: found %d blocks stored before, expected %d", seed, r.Kept, stored)
		}
		stored += r.Stored
	}
	_, r := move(t, from, to, origin(from))
	if r.Kept != stored || r.Stored != 64-stored || r.Repeated != 0 {
		t.Errorf("seed %d: found %d blocks kept and %d stored, expected %d and %d", seed, r.Kept, r.Stored, stored, 64-stored)
	}
}

// TestWhileWritten: what is sent is the volume of one moment, that of the last pass, though it
// is written all the time.
func TestWhileWritten(t *testing.T) {
	const size = 48 * mib
	from, to := newMedium(t, size), newSide(t, size)
	from.fill(t, 3)
	changes := backstore.NewChanges(size, mib)
	if err := from.slot.Track(t.Context(), changes); err != nil {
		t.Fatal(err)
	}
	writer := backstoretest.NewClient(t, from.slot, backstoretest.NewLoop(t, false))
	var stop atomic.Bool
	ended := make(chan struct{})
	written := 0
	go func() {
		defer close(ended)
		random := rand.New(rand.NewPCG(1, 2))
		for ; !stop.Load(); written++ {
			op := backstore.Op{Kind: backstore.Write, Off: random.Int64N(8*mib/4096) * 4096, Data: backstoretest.Pattern(4096, uint64(written))}
			if err := writer.Do(op); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	var moment []byte
	o := origin(from)
	o.Changed = changes.Take
	o.Hold = func(ctx context.Context, last func(context.Context, *bulk.Volume) error) (err error) {
		return from.slot.Exchange(ctx, func(store backstore.Store) (backstore.Store, error) {
			held, err := bulk.OpenVolume(backstoretest.NewLoop(t, false), store)
			if err != nil {
				return store, err
			}
			defer held.Close()
			if err := last(ctx, held); err != nil {
				return store, err
			}
			moment = make([]byte, 0, size)
			b := backstoretest.Buffer(mib)
			for off := int64(0); off < size; off += mib {
				if err := held.Read(b, off); err != nil {
					return store, err
				}
				moment = append(moment, b...)
			}
			return store, nil
		})
	}
	received := to.receive(t.Context())
	sent, err := bulk.Send(t.Context(), dial(t, to), o, bulk.Options{Channels: 2, Cores: 2})
	stop.Store(true)
	<-ended
	r := <-received
	if err != nil || r.err != nil {
		t.Fatalf("sent: %v; received: %v", err, r.err)
	}
	if !bytes.Equal(moment, to.contents(t)) || written == 0 {
		t.Errorf("what was received is not the volume of the moment (%d writes, %+v)", written, sent)
	}
}

// broken is a link that breaks after some blocks.
type broken struct {
	bulk.SourceLink
	left int64
	end  func()
}

func (l *broken) Write(b *pipeline.Block, frame []byte, c rftp.Credit, done func(error)) {
	if atomic.AddInt64(&l.left, -1) < 0 {
		go l.end()
	}
	l.SourceLink.Write(b, frame, c, done)
}

// damaging is a link that alters frames.
type damaging struct {
	bulk.SourceLink
	every  int64 // of so many frames one is damaged
	at     func(frame []byte) int
	frames int64
	most   int64
}

func (l *damaging) Write(b *pipeline.Block, frame []byte, c rftp.Credit, done func(error)) {
	if n := atomic.AddInt64(&l.frames, 1); n%l.every == 0 && n/l.every <= l.most {
		frame[l.at(frame)] ^= 1
	}
	l.SourceLink.Write(b, frame, c, done)
}

// TestDamaged: a block that is altered on its way, header, data or tag, is asked for again;
// one that always is ends the move.
func TestDamaged(t *testing.T) {
	const size = 24 * mib
	for _, c := range []struct {
		name        string
		every, most int64
		at          func([]byte) int
		fails       bool
	}{
		{"sequence", 5, 3, func([]byte) int { return 15 }, false},
		{"offset", 5, 3, func([]byte) int { return 21 }, false},
		{"data", 5, 3, func(b []byte) int { return len(b) / 2 }, false},
		{"tag", 5, 3, func(b []byte) int { return len(b) - 1 }, false},
		{"always", 1, 1 << 30, func(b []byte) int { return len(b) - 1 }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			from, to := newMedium(t, size), newSide(t, size)
			from.fill(t, 4)
			received := to.receive(t.Context())
			sent, err := bulk.Send(t.Context(), &damaging{SourceLink: dial(t, to), every: c.every, most: c.most, at: c.at}, origin(from), bulk.Options{Channels: 1, Cores: 1})
			r := <-received
			if c.fails {
				if err == nil || r.err == nil || !strings.Contains(err.Error(), "was damaged 4 times") {
					t.Errorf("found %v and %v, expected that it ends", err, r.err)
				}
				return
			}
			if err != nil || r.err != nil || sent.Again != c.most || r.Damaged != c.most || !bytes.Equal(from.contents(t), to.contents(t)) {
				t.Errorf("found %+v %v and %+v %v", sent, err, r.Received, r.err)
			}
		})
	}
}

// TestStrangers: who has another key comes nowhere, and disturbs nobody.
func TestStrangers(t *testing.T) { overEach(t, overStrangers) }

func overStrangers(t *testing.T, n network) {
	const size = 4 * mib
	from, to := newMedium(t, size), newSideOf(t, n, size)
	from.fill(t, 6)
	if link, err := to.dial(t, keyed.NewKey()); err == nil {
		_ = link.Send(&rftp.Message{Type: rftp.BlockSizeReq, Size: mib}) // TLS 1.3: the server's refusal comes later
		if m, err := link.Receive(); err == nil {
			t.Errorf("found %+v", m)
		}
		_ = link.Close()
	}
	move(t, from, to, origin(from))
}

// TestDoubtful: after the machine was started anew, what the journal says is compared with
// the data.
func TestDoubtful(t *testing.T) {
	const size = 8 * mib
	from, to := newMedium(t, size), newSide(t, size)
	for n := range int64(8) {
		from.write(t, n*mib, backstoretest.Pattern(mib, uint64(n)))
	}
	move(t, from, to, origin(from))
	to.write(t, 3*mib, make([]byte, mib)) // which was not stable when the power failed
	f, err := os.OpenFile(to.path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("another boot"), 128); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, r := move(t, from, to, origin(from)); r.Kept != 7 || r.Stored != 1 {
		t.Errorf("found %+v", r)
	}
}

// TestFullDestination: a destination without space for all of it ends the move on both sides
// with the reason, and what it has stored is not sent again when there is space.
func TestFullDestination(t *testing.T) { overEach(t, overFullDestination) }

func overFullDestination(t *testing.T, n network) {
	const size, fits = 16 * mib, 9
	from, to := newMedium(t, size), newSideOf(t, n, size)
	for n := range bulk.Blocks(size) {
		from.write(t, n*mib, backstoretest.Pattern(mib, uint64(n)))
	}
	var full *errstore.Store
	err := to.slot.Exchange(t.Context(), func(s backstore.Store) (backstore.Store, error) {
		full = errstore.Wrap(s, errstore.Rule{Kinds: []backstore.Kind{backstore.Write}, After: fits * 4, Err: unix.ENOSPC})
		return full, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	received := to.receive(t.Context())
	_, err = bulk.Send(t.Context(), dial(t, to), origin(from), bulk.Options{Channels: 2, Cores: 2})
	r := <-received
	if err == nil || !strings.Contains(err.Error(), "no space left") || !errors.Is(r.err, unix.ENOSPC) || r.Stored == 0 {
		t.Fatalf("found %v, and %+v, %v", err, r.Received, r.err)
	}
	full.SetRules()
	if _, again := move(t, from, to, origin(from)); again.Kept != r.Stored || again.Repeated != 0 {
		t.Errorf("found %+v after %+v", again, r.Received)
	}
}

// BenchmarkMove moves a volume in memory over loopback, both sides in this process.
func BenchmarkMove(b *testing.B) {
	const size = 256 * mib
	from, to := newMedium(b, size), newSide(b, size)
	for n := range bulk.Blocks(size) {
		from.write(b, n*mib, backstoretest.Pattern(mib, uint64(n)))
	}
	b.SetBytes(size)
	for b.Loop() {
		received := to.receive(b.Context())
		_, err := bulk.Send(b.Context(), dial(b, to), origin(from), bulk.Options{Channels: 2, Cores: 1})
		if r := <-received; err != nil || r.err != nil {
			b.Fatal(err, r.err)
		}
		b.StopTimer()
		if err := os.Remove(to.path); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
