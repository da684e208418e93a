package load

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"lunar/internal/evloop"
	"lunar/internal/initiator"
)

func TestPatternStaysInRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := Workload{
			FirstLBA: rapid.Uint64Range(0, 1000).Draw(t, "first"), Blocks: rapid.Uint64Range(64, 5000).Draw(t, "blocks"),
			Random: rapid.Bool().Draw(t, "random"), ReadPercent: rapid.IntRange(0, 100).Draw(t, "reads"),
			Seed: rapid.Uint64().Draw(t, "seed"), Sizes: []Share{{512, 3}, {512 * 64, 1}},
		}
		p := newPattern(&w, 512, 1, 3)
		again := newPattern(&w, 512, 1, 3)
		for range 100 {
			op := p.next()
			if op.lba < w.FirstLBA || op.lba+uint64(op.blocks) > w.FirstLBA+w.Blocks {
				t.Fatalf("%+v outside of %d blocks from %d", op, w.Blocks, w.FirstLBA)
			}
			if op.write && w.ReadPercent == 100 || !op.write && w.ReadPercent == 0 {
				t.Fatalf("%+v with %d%% reads", op, w.ReadPercent)
			}
			if op != again.next() {
				t.Fatal("equal seeds differ")
			}
		}
	})
}

func TestSequentialOrder(t *testing.T) {
	w := Workload{FirstLBA: 10, Blocks: 20, Sizes: []Share{{8 * 512, 1}}, ReadPercent: 100}
	p := newPattern(&w, 512, 1, 2)
	var got []uint64
	for range 4 {
		got = append(got, p.next().lba)
	}
	if want := []uint64{20, 10, 18, 10}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, expected %v", got, want)
	}
}

func TestMixFollowsWeights(t *testing.T) {
	w := Workload{Blocks: 1000, Random: true, Sizes: []Share{{512, 70}, {1024, 30}}, ReadPercent: 50}
	p := newPattern(&w, 512, 0, 1)
	small, writes := 0, 0
	for range 10000 {
		op := p.next()
		if op.blocks == 1 {
			small++
		}
		if op.write {
			writes++
		}
	}
	if small < 6700 || small > 7300 || writes < 4700 || writes > 5300 {
		t.Errorf("%d of 10000 small, expected about 7000; %d writes, expected about 5000", small, writes)
	}
}

func TestLedgerClaims(t *testing.T) {
	l := newLedger(&Workload{FirstLBA: 100, Blocks: 10}, 512)
	read, write := operation{lba: 102, blocks: 4}, operation{lba: 105, blocks: 2, write: true}
	for range 2 {
		if !l.claim(read) {
			t.Fatal("one of two reads of the same blocks was refused")
		}
	}
	if l.claim(write) {
		t.Fatal("a write was let in on blocks being read")
	}
	l.release(read, 0)
	l.release(read, 0)
	if !l.claim(write) || l.claim(read) || l.claim(write) {
		t.Fatal("a write has to be alone on its blocks")
	}
	l.release(write, 5)
	if op, ok := l.nextWritten(100, 8); !ok || op != (operation{lba: 105, blocks: 2}) {
		t.Errorf("written: %+v %t", op, ok)
	}
	if op, ok := l.nextWritten(107, 8); ok {
		t.Errorf("nothing was written at %+v", op)
	}
}

// TestLedgerSeesEveryByte flips each byte of a block in turn.
func TestLedgerSeesEveryByte(t *testing.T) {
	l := newLedger(&Workload{Seed: 3, Blocks: 4}, 512)
	op := operation{lba: 1, blocks: 2, write: true}
	data := make([]byte, 1024)
	l.release(op, l.fill(data, op))
	if known, bad := l.check(data, op); known != 2 || bad != nil {
		t.Fatal(known, bad)
	}
	for i := range data {
		data[i] ^= 1
		if _, bad := l.check(data, op); bad == nil || bad.LBA != uint64(1+i/512) || bad.Byte != i%512&^7 {
			t.Fatalf("byte %d: %v", i, bad)
		}
		data[i] ^= 1
	}
	old := bytes.Clone(data)
	l.release(op, l.fill(data, op))
	if _, bad := l.check(old, op); bad == nil {
		t.Error("data of an older generation was accepted")
	}
	if _, bad := l.check(append(bytes.Clone(data[512:]), data[:512]...), op); bad == nil {
		t.Error("exchanged blocks were accepted")
	}
}

// TestOutboxKeepsOrder flushes through a socket that takes little at a time.
func TestOutboxKeepsOrder(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fds[0])
	if err := unix.SetsockoptInt(fds[0], unix.SOL_SOCKET, unix.SO_SNDBUF, 4096); err != nil {
		t.Fatal(err)
	}
	reader := os.NewFile(uintptr(fds[1]), "reader")
	defer reader.Close()
	o := outbox{headers: make([]byte, 1<<16), iov: make([]unix.Iovec, 0, 3000)}
	var want []byte
	for i := range 1200 {
		h := o.header(48)
		for j := range h {
			h[j] = byte(i + j)
		}
		want = append(want, h...)
		if i%3 != 0 {
			data := bytes.Repeat([]byte{byte(i)}, 1+i%700)
			if !o.data(data) {
				t.Fatal("no room")
			}
			want = append(want, data...)
		}
	}
	var got []byte
	part := make([]byte, 1500)
	for done := false; !done; {
		if done, err = o.flush(fds[0]); err != nil {
			t.Fatal(err)
		}
		n, err := reader.Read(part)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, part[:n]...)
	}
	for len(got) < len(want) {
		n, err := reader.Read(part)
		if err != nil && err != io.EOF {
			t.Fatal(err)
		}
		got = append(got, part[:n]...)
	}
	if !bytes.Equal(got, want) {
		t.Error("bytes arrived changed or out of order")
	}
	if !o.empty() || o.used != 0 {
		t.Error("the outbox is not empty")
	}
}

func TestOutboxJoinsHeaders(t *testing.T) {
	o := outbox{headers: make([]byte, 200), iov: make([]unix.Iovec, 0, 2)}
	o.header(48)
	o.header(48)
	if len(o.iov) != 1 || o.iov[0].Len != 96 {
		t.Errorf("vectors %v, expected one of 96 bytes", o.iov)
	}
	if !o.data(make([]byte, 8)) || o.header(48) != nil || o.header(200) != nil {
		t.Error("a full outbox took more")
	}
}

func TestParseStat(t *testing.T) {
	text := []byte("42 (a) b (c) S 1 42 42 0 -1 4194560 1 2 3 4 150 50 7 8 20 0 3 0 100 0")
	if got, err := parseStat(text); err != nil || got != 2*time.Second {
		t.Errorf("%v %v, expected 2s", got, err)
	}
	for _, bad := range []string{"", "42 (a) S 1", "42 (a) S 1 2 3 4 5 6 7 8 9 10 x y 1"} {
		if got, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q gave %v", bad, got)
		}
	}
}

func TestProcessTime(t *testing.T) {
	before, err := ProcessTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for x, until := 0, time.Now().Add(5*time.Millisecond); time.Now().Before(until); x++ {
	}
	after, err := ProcessTime(os.Getpid())
	if err != nil || after <= before {
		t.Errorf("%v then %v: %v", before, after, err)
	}
	for _, pid := range []int{-1, 0, maxPID, 1 << 30} { // the kernel gives out less than maxPID
		if _, err := ProcessTime(pid); err == nil {
			t.Errorf("process %d, which does not exist, has CPU time", pid)
		}
	}
}

// receiver is a connection of a made-up engine with depth reads outstanding.
func receiver(t testing.TB, depth int, params initiator.Params) *connection {
	t.Helper()
	loop, err := evloop.New(evloop.Config{Name: "test", CPU: -1, Node: -1})
	if err != nil {
		t.Fatal(err)
	}
	w := Workload{Depth: depth, Sizes: []Share{{4096, 1}}, ReadPercent: 100, Random: true, Blocks: 1 << 20}
	e := &engine{loop: loop, unit: Unit{BlockSize: 512, Blocks: 1 << 20}, workload: w, issuing: true, measuring: true}
	t.Cleanup(e.release)
	c := newConnection(e, 0, 1, initiator.NewEstablished(nil, params, 1, 1))
	e.connections = []*connection{c}
	if err := c.openSlots(); err != nil {
		t.Fatal(err)
	}
	return c
}

// replies encodes the answer to every command in the outbox, which it empties.
func replies(c *connection, into []byte) []byte {
	for i := 0; i < c.outbox.used; i += headerLength {
		request := c.outbox.headers[i:][:headerLength]
		at := len(into)
		into = into[:at+headerLength+4096]
		h := into[at:]
		clear(h[:headerLength])
		h[0], h[1] = initiator.OpDataIn, initiator.FlagFinal|initiator.FlagStatus
		binary.BigEndian.PutUint32(h[4:], 4096)
		copy(h[16:20], request[16:20])
		put(h, 20, initiator.NoTag)
		sn := binary.BigEndian.Uint32(request[24:])
		put(h, 24, sn)
		put(h, 28, sn+1)
		put(h, 32, sn+64)
	}
	c.outbox = outbox{headers: c.outbox.headers, iov: c.outbox.iov[:0]}
	return into
}

var params8K = initiator.Params{MaxRecvDataSegmentLength: 8192, TargetMaxRecv: 8192, MaxBurstLength: 262144}

// TestParseAtEverySplit cuts a stream of replies in two at every byte.
func TestParseAtEverySplit(t *testing.T) {
	const depth = 2
	c := receiver(t, depth, params8K)
	memory := make([]byte, depth*(headerLength+4096))
	for cut := range memory {
		if err := c.issue(); err != nil {
			t.Fatal(err)
		}
		stream := replies(c, memory[:0])
		before := c.count.reads
		rest, err := c.parse(stream[:cut])
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		rest, err = c.parse(append(bytes.Clone(rest), stream[cut:]...))
		if err != nil || len(rest) != 0 || c.count.reads != before+depth || c.engine.live != 0 {
			t.Fatalf("cut at %d: %v, %d bytes left, %d reads", cut, err, len(rest), c.count.reads-before)
		}
	}
}

// BenchmarkTurn is everything that a read costs the client outside of the
// kernel: issue, parse, account. It must not allocate.
func BenchmarkTurn(b *testing.B) {
	const depth = 32
	c := receiver(b, depth, params8K)
	memory := make([]byte, depth*(headerLength+4096))
	b.ReportAllocs()
	for n := 0; n < b.N; n += depth {
		turnOnce(b, c, memory)
	}
}

func turnOnce(t testing.TB, c *connection, memory []byte) {
	if err := c.issue(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.parse(replies(c, memory[:0])); err != nil {
		t.Fatal(err)
	}
}

func TestTurnDoesNotAllocate(t *testing.T) {
	c := receiver(t, 32, params8K)
	memory := make([]byte, 32*(headerLength+4096))
	if n := testing.AllocsPerRun(100, func() { turnOnce(t, c, memory) }); n != 0 {
		t.Errorf("%v allocations per turn of 32 commands", n)
	}
}

// FuzzParse feeds arbitrary bytes in two pieces to a connection with reads under
// way: it ends with an error or waits for more, and never panics.
func FuzzParse(f *testing.F) {
	c := receiver(f, 2, params8K)
	if err := c.issue(); err != nil {
		f.Fatal(err)
	}
	f.Add(replies(c, make([]byte, 0, 2*(headerLength+4096)))[:200], 50)
	f.Add(make([]byte, 100), 48)
	slots, free, state := c.slots, c.free, *c.state
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		fresh := *c
		established := state
		fresh.state, fresh.stream = &established, stream{}
		fresh.slots, fresh.free = append([]slot(nil), slots...), append([]int32(nil), free...)
		cut = min(max(cut, 0), len(b))
		rest, err := fresh.parse(b[:cut])
		if err != nil {
			return
		}
		if rest, err = fresh.parse(append(bytes.Clone(rest), b[cut:]...)); err == nil && len(rest) > headerLength+4 {
			t.Errorf("%d bytes left over, more than a part of a PDU", len(rest))
		}
	})
}

// TestCommandsKeepTheRate: commands come as fast as the rate says, late ones are made up for,
// but not those of a long pause.
func TestCommandsKeepTheRate(t *testing.T) {
	count := func(p *pace, now int64) (n int) {
		for ; p.due(now) && n < 1000; n++ {
			p.took()
		}
		return n
	}
	p := newPace(100, 0, 0)
	first := count(&p, int64(time.Second)) // a pause before the first command
	if want := int(lateness/1e7) + 1; first != want {
		t.Errorf("%d commands are due after a pause, expected %d", first, want)
	}
	for i := int64(1); i <= 20; i++ {
		if n := count(&p, int64(time.Second)+i*1e7); n != 1 {
			t.Errorf("after %d ms %d commands are due, expected 1", 10*i, n)
		}
	}
	if n := count(&p, int64(time.Second)+25e7); n != 5 {
		t.Errorf("50 ms later %d commands are due, expected 5", n)
	}
	if free := newPace(0, 0, 0); count(&free, 0) != 1000 {
		t.Error("without a rate commands are held back")
	}
}

// TestObserve: each command that ended well is told once.
func TestObserve(t *testing.T) {
	d := newDiskTarget(t)
	w := quick()
	var seen [2]uint64
	w.Warmup, w.Rate = 0, 500
	w.Observe = func(connection int, started, ended int64) {
		if ended < started {
			t.Errorf("a command ended %d ns before it began", started-ended)
		}
		seen[connection]++
	}
	r := runLoad(t, d, 2, initiator.Options{}, w)
	// What ends after the measured time is told, not counted in the result.
	if n, most := seen[0]+seen[1], r.Reads+r.Writes+2*uint64(w.Depth); n < r.Reads+r.Writes || n > most {
		t.Errorf("%d commands were told, expected %d to %d", n, r.Reads+r.Writes, most)
	}
}

// TestInTurns: commands that are sent together end together, reads and writes.
func TestInTurns(t *testing.T) {
	d := newDiskTarget(t)
	w := quick()
	w.InTurns = true
	ends, n := map[int64]int64{}, map[int64]int{}
	w.Observe = func(_ int, started, ended int64) {
		if first, ok := ends[started]; ok && first != ended {
			t.Errorf("commands sent at %d ended %d ns after each other", started, ended-first)
		}
		ends[started] = ended
		n[started]++
	}
	runUntil(t, d, 1, initiator.Options{}, w, both)
	for started, together := range n {
		if together != w.Depth {
			t.Errorf("%d commands were sent at %d, expected %d", together, started, w.Depth)
		}
	}
}

// TestPercentilesStayBelowTheMaximum: a histogram's step may be wider than what
// is above the longest time, which is exact, also beyond its range.
func TestPercentilesStayBelowTheMaximum(t *testing.T) {
	for _, longest := range []int64{1, 2049, 1234567, maxLatency - 1, maxLatency * 3} {
		h := hdrhistogram.New(1, maxLatency, 3)
		if err := h.RecordValue(min(longest, maxLatency)); err != nil {
			t.Fatal(err)
		}
		l, most := summarize(h, longest), float64(longest)/1e3
		if l.Max != most || max(l.Mean, l.P50, l.P90, l.P99, l.P999) > most {
			t.Errorf("found %+v of %d ns", l, longest)
		}
	}
}
