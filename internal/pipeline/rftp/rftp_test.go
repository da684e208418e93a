package rftp

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"lunar/internal/pipeline"
)

func pool(n int) (all []*pipeline.Block) {
	for i := range n {
		all = append(all, &pipeline.Block{Index: i})
	}
	return all
}

func loaded(t *testing.T, sequence uint64) *pipeline.Block {
	t.Helper()
	b := &pipeline.Block{Session: 7, Sequence: sequence}
	do(t, b, pipeline.Source, pipeline.Take, pipeline.Fill)
	return b
}

func do(t *testing.T, b *pipeline.Block, table *pipeline.Table, all ...pipeline.Event) {
	t.Helper()
	for _, e := range all {
		if err := b.Do(table, e); err != nil {
			t.Fatal(err)
		}
	}
}

// places is where the blocks of a pool are: free, waiting, ready and in use are all of it.
func places(s *Sink, blocks []*pipeline.Block) (free, waiting, other int) {
	for _, b := range blocks {
		switch b.State {
		case pipeline.Free:
			free++
		case pipeline.NetWait:
			waiting++
		default:
			other++
		}
	}
	return free, waiting, other
}

// TestCreditsDouble (vector 1): with a pool of 8, one credit for a request and a link without
// limits there are 1, 2, 4, 8, 8 blocks in flight per cycle.
func TestCreditsDouble(t *testing.T) {
	blocks := pool(8)
	sink, source := NewSink(blocks, 1<<20, 9, 4096, 1), NewSource(false)
	for i := range uint64(64) {
		source.Loaded(loaded(t, i))
	}
	if !source.Asks() || source.Asks() {
		t.Fatal("the source does not ask once")
	}
	source.Granted(sink.Requested())
	var found []int
	for range 5 {
		var flight []*pipeline.Block
		for {
			b, _, err := source.Post()
			if err != nil {
				t.Fatal(err)
			}
			if b == nil {
				break
			}
			flight = append(flight, b)
		}
		found = append(found, len(flight))
		for _, b := range flight {
			m, err := source.Completed(b, true)
			if err != nil {
				t.Fatal(err)
			}
			at, err := sink.Done(m.Addr, false)
			if err != nil {
				t.Fatal(err)
			}
			do(t, at, pipeline.Sink, pipeline.Store, pipeline.Release)
			if c := sink.Put(at); c != nil {
				t.Fatalf("found credits %v that nobody asked for", c)
			}
			source.Granted(sink.Answer())
			if free, waiting, other := places(sink, blocks); free+waiting+other != 8 || free != sink.Free() {
				t.Fatalf("found %d free, %d waiting and %d other blocks", free, waiting, other)
			}
		}
	}
	if want := []int{1, 2, 4, 8, 8}; !slices.Equal(found, want) {
		t.Errorf("found %v blocks in flight, expected %v", found, want)
	}
}

// TestEmptyPool (vector 2): BLOCK_DONE is not answered, and MR_REQUEST is when a block is
// free again, with one.
func TestEmptyPool(t *testing.T) {
	blocks := pool(2)
	sink := NewSink(blocks, 0, 0, 4096, 2)
	credits := sink.Requested()
	if len(credits) != 2 {
		t.Fatalf("found %d credits, expected 2", len(credits))
	}
	a, err := sink.Done(credits[0].Addr, false)
	if err != nil || len(sink.Answer()) != 0 {
		t.Fatalf("found an answer (error %v), expected none", err)
	}
	b, err := sink.Done(credits[1].Addr, false)
	if err != nil || len(sink.Answer()) != 0 || len(sink.Requested()) != 0 {
		t.Fatalf("found an answer (error %v), expected none", err)
	}
	do(t, a, pipeline.Sink, pipeline.Store, pipeline.Release)
	if c := sink.Put(a); len(c) != 1 || c[0].Addr != credits[0].Addr {
		t.Errorf("found credits %v, expected the one of %#x", c, credits[0].Addr)
	}
	do(t, b, pipeline.Sink, pipeline.Store, pipeline.Release)
	if c := sink.Put(b); len(c) != 0 {
		t.Errorf("found credits %v, expected none", c)
	}
}

// TestCompletionError (vector 3): the sink hears of block 5's credit that it is unused, and of
// the block itself only for the address that it is at in the end.
func TestCompletionError(t *testing.T) {
	blocks := pool(2)
	sink, source := NewSink(blocks, 0, 0, 4096, 2), NewSource(false)
	source.Granted(sink.Requested())
	five := loaded(t, 5)
	source.Loaded(five)
	_, first, _ := source.Post()
	m, err := source.Completed(five, false)
	if err != nil || m.Type != BlockDone || m.Flags != FlagUnused || m.Addr != first.Addr || m.Sequence != 5 {
		t.Fatalf("found %+v and error %v, expected an unused credit", m, err)
	}
	if b, err := sink.Done(m.Addr, true); b != nil || err != nil || sink.Free() != 1 {
		t.Fatalf("found block %v, error %v and %d free", b, err, sink.Free())
	}
	b, second, err := source.Post()
	if err != nil || b != five || second.Addr == first.Addr {
		t.Fatalf("found block %v at %#x (error %v), expected 5 elsewhere than %#x", b, second.Addr, err, first.Addr)
	}
	m, err = source.Completed(five, true)
	if err != nil || m.Flags != 0 || m.Addr != second.Addr {
		t.Errorf("found %+v and error %v", m, err)
	}
	if _, err := sink.Done(first.Addr, false); err == nil {
		t.Error("a block was taken for a credit that is back")
	}
	if _, err := source.Completed(five, true); err == nil {
		t.Error("a block has completed twice")
	}
}

// TestOrderedSendsNoMessage: where the sink hears of a block by its channel.
func TestOrderedSendsNoMessage(t *testing.T) {
	source := NewSource(true)
	source.Granted([]Credit{{Addr: 1}, {Addr: 2}})
	b := loaded(t, 1)
	source.Loaded(b)
	if _, _, err := source.Post(); err != nil {
		t.Fatal(err)
	}
	if m, err := source.Completed(b, true); m != nil || err != nil || b.State != pipeline.Free {
		t.Errorf("found %+v, error %v, block %v", m, err, b.State)
	}
}

// TestMessages: what is written is read, and what is cut or longer is refused.
func TestMessages(t *testing.T) {
	for _, m := range []Message{
		{Type: BlockSizeReq, Session: 1, Size: 4 << 20}, {Type: BlockSizeRsp, Size: 1 << 20, OK: true},
		{Type: ChannelsReq, Count: 3}, {Type: ChannelsRsp, Count: 2},
		{Type: SessionReq, Session: 0xfffffffe, Name: "disk", Size: 1 << 40, Unit: 512, Physical: 4096}, {Type: SessionRsp, Text: "no"},
		{Type: MRRequest}, {Type: MRResponse, Credits: []Credit{{1 << 40, 7, 4096}, {2, 3, 4}}}, {Type: MRResponse},
		{Type: BlockDone, Flags: FlagUnused, Sequence: 9, Addr: 1 << 50}, {Type: DatasetComplete, Count: 12, Sequence: 1, Checksum: [32]byte{1, 31: 2}, OK: true},
		{Type: Digests, Flags: FlagLast, Sequence: 2048, Sums: [][32]byte{{3}, {}}}, {Type: BlockAgain, Sequence: 4, Addr: 5}, {Type: Failed, Text: "disk full"},
	} {
		b := m.Append([]byte("x"))[1:]
		found, err := Parse(b)
		if err != nil || !reflect.DeepEqual(found, m) {
			t.Errorf("found %+v and error %v, expected %+v", found, err, m)
		}
		if _, err := Parse(append(slices.Clone(b), 0)); err == nil {
			t.Errorf("%v with a byte more was taken", m.Type)
		}
		for n := range len(b) {
			if _, err := Parse(b[:n]); err == nil {
				t.Errorf("%v of %d bytes instead of %d was taken", m.Type, n, len(b))
			}
		}
	}
	// Layout: type, flags, length, session, then the fields, all big endian.
	m := Message{Type: BlockDone, Flags: 1, Session: 0x01020304, Sequence: 5, Addr: 6}
	if want := []byte{9, 1, 0, 16, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 6}; !bytes.Equal(m.Append(nil), want) {
		t.Errorf("found % x, expected % x", m.Append(nil), want)
	}
}

// TestHeader: 32 bytes, big endian, in their order.
func TestHeader(t *testing.T) {
	h := Header{Session: 1, Length: 2, Sequence: 3, Offset: 4, CRC: 5}
	b := make([]byte, HeaderSize)
	h.Put(b)
	want := []byte{0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0, 0}
	if !bytes.Equal(b, want) {
		t.Errorf("found % x, expected % x", b, want)
	}
	if found, err := ParseHeader(b, 1, 2); found != h || err != nil {
		t.Errorf("found %+v and error %v", found, err)
	}
	for _, bad := range []func([]byte){func(b []byte) { b[0] = 1 }, func(b []byte) { b[7] = 3 }, func(b []byte) { b[7] = 0 }, func(b []byte) { b[31] = 1 }} {
		c := slices.Clone(b)
		bad(c)
		if _, err := ParseHeader(c, 1, 2); err == nil {
			t.Errorf("header % x was taken", c)
		}
	}
}

// FuzzParse: no bytes break the parser, and what it takes is written as it was.
func FuzzParse(f *testing.F) {
	f.Add((&Message{Type: MRResponse, Credits: []Credit{{1, 2, 3}}}).Append(nil))
	f.Add((&Message{Type: SessionReq, Name: "disk"}).Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := Parse(b); err == nil && len(m.Text) <= MaxText && !bytes.Equal(m.Append(nil), b) {
			t.Errorf("% x is written as % x", b, m.Append(nil))
		}
	})
}

// TestNoCreditIsLost: whatever fails and in whatever order things end, free, waiting and used
// blocks are the pool, and all blocks arrive once.
func TestNoCreditIsLost(t *testing.T) {
	const seed = 17
	random := rand.New(rand.NewPCG(seed, 1))
	blocks := pool(5)
	sink, source := NewSink(blocks, 0, 0, 1, 1), NewSource(false)
	arrived, flight, using := map[uint64]bool{}, []*pipeline.Block(nil), []*pipeline.Block(nil)
	pick := func(l *[]*pipeline.Block) *pipeline.Block {
		i := random.IntN(len(*l))
		b := (*l)[i]
		*l = slices.Delete(*l, i, i+1)
		return b
	}
	next := uint64(0)
	for len(arrived) < 2000 {
		for source.Waiting() < 4 {
			source.Loaded(loaded(t, next))
			next++
		}
		if source.Asks() {
			source.Granted(sink.Requested())
		}
		if b, _, err := source.Post(); err != nil {
			t.Fatal(err)
		} else if b != nil {
			flight = append(flight, b)
		}
		if len(flight) > 0 && random.IntN(2) == 0 {
			b := pick(&flight)
			m, err := source.Completed(b, random.IntN(4) > 0)
			if err != nil {
				t.Fatal(err)
			}
			at, err := sink.Done(m.Addr, m.Flags&FlagUnused != 0)
			if err != nil {
				t.Fatal(err)
			}
			if at != nil {
				if arrived[m.Sequence] {
					t.Fatalf("block %d arrived twice", m.Sequence)
				}
				arrived[m.Sequence] = true
				do(t, at, pipeline.Sink, pipeline.Store)
				using = append(using, at)
			}
			source.Granted(sink.Answer())
		}
		if len(using) > 0 && random.IntN(2) == 0 {
			b := pick(&using)
			do(t, b, pipeline.Sink, pipeline.Release)
			source.Granted(sink.Put(b))
		}
		if free, waiting, other := places(sink, blocks); free+waiting+other != 5 || free != sink.Free() || waiting != source.Credits()+source.UnderWay() || other != len(using) {
			t.Fatalf("seed %d: found %d free, %d waiting, %d used; the source has %d credits and %d under way", seed, free, waiting, other, source.Credits(), source.UnderWay())
		}
	}
}
