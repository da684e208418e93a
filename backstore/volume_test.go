package backstore

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"lunar/internal/evloop"
)

func TestClassify(t *testing.T) {
	for errno, want := range map[unix.Errno]error{
		unix.ENOSPC: ErrNoSpace, unix.EDQUOT: ErrNoSpace, unix.EFBIG: ErrNoSpace,
		unix.ENXIO: ErrGone, unix.ENODEV: ErrGone, unix.ESTALE: ErrGone,
		unix.EROFS: ErrReadOnly, unix.EOPNOTSUPP: ErrUnsupported,
		unix.EIO: unix.EIO, unix.EILSEQ: unix.EILSEQ,
	} {
		err := fmt.Errorf("read: %w", Classify(errno))
		if !errors.Is(err, want) || !errors.Is(err, errno) {
			t.Errorf("%v is classified as %q, expected it to be %v as well", errno, err, want)
		}
	}
	for _, class := range []error{ErrNoSpace, ErrGone, ErrReadOnly, ErrUnsupported, ErrTruncated} {
		if errors.Is(Classify(unix.EIO), class) {
			t.Errorf("EIO is classified as %v", class)
		}
	}
}

func TestCheck(t *testing.T) {
	store := Info{Size: 1 << 20, BlockSize: 512, Discard: true}
	readOnly, solid := Info{Size: 1 << 20, ReadOnly: true}, Info{Size: 1 << 20}
	for _, test := range []struct {
		info Info
		op   Op
		want string // in the error; empty is none
	}{
		{store, Op{Kind: Read, Off: 1<<20 - 512, Data: make([]byte, 512)}, ""},
		{store, Op{Kind: Read, Off: 1 << 20, Data: make([]byte, 512)}, "read of 512 bytes at 1048576, the size is 1048576"},
		{store, Op{Kind: Write, Off: 100, Data: make([]byte, 512)}, "write of 512 bytes at 100: expected multiples of 512"},
		{store, Op{Kind: Write, Data: make([]byte, 100)}, "write of 100 bytes at 0: expected multiples of 512"},
		{store, Op{Kind: Discard, Off: 512, Len: 513}, "discard of 513 bytes at 512: expected multiples of 512"},
		{store, Op{Kind: Discard, Len: 1 << 20}, ""},
		{store, Op{Kind: Flush, Off: -1, Len: 1 << 40}, ""},
		{store, Op{Kind: Erase + 1}, "kind 8: not supported"},
		{store, Op{Kind: Erase, Len: 1 << 20}, "erase: not supported"},
		{Info{Size: 1 << 20, CryptoErase: true}, Op{Kind: Erase, Len: 1 << 20}, ""},
		{Info{Size: 1 << 20, CryptoErase: true, ReadOnly: true}, Op{Kind: Erase, Len: 1 << 20}, "erase: the backing store is read-only"},
		{Info{Size: 1 << 20, MaxAtomic: 8192, AtomicUnit: 4096}, Op{Kind: Write, Atomic: true, Data: make([]byte, 12288)}, "expected multiples of 4096 bytes, at most 8192"},
		{solid, Op{Kind: Discard, Len: 512}, "discard: not supported"},
		{solid, Op{Kind: Write, Off: 1, Data: make([]byte, 1)}, ""},
		{readOnly, Op{Kind: WriteZeroes, Len: 512}, "write zeroes: the backing store is read-only"},
		{readOnly, Op{Kind: Map, Len: 512}, ""},
	} {
		err := Check(&test.op, &test.info)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%v of %d at %d: %v, expected %q", test.op.Kind, test.op.Length(), test.op.Off, err, test.want)
		}
	}
}

func TestCheckDirect(t *testing.T) {
	for _, test := range []struct {
		memory, offset, block, size int64
		want                        string // in the error; empty is none
	}{
		{512, 512, 512, 1 << 20, ""},
		{4, 512, 4096, 1 << 20, ""},
		{4096, 4096, 4096, 1 << 20, ""},
		{0, 0, 512, 1 << 20, "no direct I/O for this file"},
		{8192, 512, 512, 1 << 20, "memory aligned to 8192"},
		{512, 4096, 512, 1 << 20, "units of 4096 bytes, the block size is 512: use a block size of 4096"},
		{512, 4096, 4096, 1<<20 + 512, "the size 1049088 is 512 bytes more"},
	} {
		err := checkDirect(test.memory, test.offset, test.block, test.size)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("checkDirect(%d, %d, %d, %d) = %v, expected %q", test.memory, test.offset, test.block, test.size, err, test.want)
		}
	}
}

// fakeVolume has no file: the tests say what its calls return.
func fakeVolume(info Info) *volume {
	v := &volume{fd: -1, path: "fake", log: slog.New(slog.DiscardHandler), zeroes: make([]byte, zeroChunk)}
	v.info.Store(&info)
	return v
}

// play runs op against the results of its calls and returns what was called.
func play(t *testing.T, v *volume, op *Op, results ...int64) (verbs []verb) {
	t.Helper()
	ended := v.begin(op)
	for _, res := range results {
		if ended {
			t.Fatalf("%v ended after %v, %d results are left", op.Kind, verbs, len(results)-len(verbs))
		}
		verbs = append(verbs, op.lane.call.verb)
		ended = v.advance(op, res)
	}
	if !ended {
		t.Fatalf("%v goes on after %v", op.Kind, verbs)
	}
	return verbs
}

// TestProgress plays what a disk in a good mood does not do.
func TestProgress(t *testing.T) {
	plain := Info{Size: 1 << 20, BlockSize: 1, Discard: true}
	refused := -int64(unix.EOPNOTSUPP)
	data := make([]byte, 4096)
	for name, test := range map[string]struct {
		op      Op
		sync    bool
		results []int64
		verbs   []verb
		err     error
	}{
		"short read":           {op: Op{Kind: Read, Data: data}, results: []int64{1000, 3096}, verbs: []verb{readCall, readCall}},
		"short write":          {op: Op{Kind: Write, Data: data}, results: []int64{512, 1, 3583}, verbs: []verb{writeCall, writeCall, writeCall}},
		"write of nothing":     {op: Op{Kind: Write, Data: data}, results: []int64{0}, verbs: []verb{writeCall}, err: io.ErrShortWrite},
		"end of file":          {op: Op{Kind: Read, Data: data}, results: []int64{512, 0}, verbs: []verb{readCall, readCall}, err: ErrTruncated},
		"write runs full":      {op: Op{Kind: Write, Data: data}, results: []int64{512, -int64(unix.ENOSPC)}, verbs: []verb{writeCall, writeCall}, err: ErrNoSpace},
		"no RWF_DSYNC":         {op: Op{Kind: Write, FUA: true, Data: data}, results: []int64{refused, 4096, 0}, verbs: []verb{writeCall, writeCall, syncCall}},
		"sync discard":         {op: Op{Kind: Discard, Len: 4096}, sync: true, results: []int64{0, 0}, verbs: []verb{allocCall, syncCall}},
		"sync write":           {op: Op{Kind: Write, Data: data}, sync: true, results: []int64{4096}, verbs: []verb{writeCall}},
		"discard is refused":   {op: Op{Kind: Discard, Len: 4096}, results: []int64{refused}, verbs: []verb{allocCall}, err: ErrUnsupported},
		"zero range refused":   {op: Op{Kind: WriteZeroes, Len: zeroChunk + 512}, results: []int64{refused, zeroChunk, 512}, verbs: []verb{allocCall, writeCall, writeCall}},
		"holes unknown":        {op: Op{Kind: Map, Len: 4096}, results: []int64{refused}, verbs: []verb{seekCall}},
		"device is gone":       {op: Op{Kind: Read, Data: data}, results: []int64{-int64(unix.ENODEV)}, verbs: []verb{readCall}, err: ErrGone},
		"medium error":         {op: Op{Kind: Read, Data: data}, results: []int64{-int64(unix.EIO)}, verbs: []verb{readCall}, err: unix.EIO},
		"read is not for sync": {op: Op{Kind: Read, FUA: true, Data: data}, sync: true, results: []int64{4096}, verbs: []verb{readCall}},
	} {
		t.Run(name, func(t *testing.T) {
			v := fakeVolume(plain)
			v.sync = test.sync
			verbs := play(t, v, &test.op, test.results...)
			if fmt.Sprint(verbs) != fmt.Sprint(test.verbs) || !errors.Is(test.op.Err, test.err) {
				t.Errorf("calls %v, error %v; expected %v, %v", verbs, test.op.Err, test.verbs, test.err)
			}
		})
	}
}

func TestRefusedDiscardIsForgotten(t *testing.T) {
	v := fakeVolume(Info{Size: 1 << 20, Discard: true, DiscardGran: 4096, DiscardZeroes: true})
	play(t, v, &Op{Kind: Discard, Len: 4096}, -int64(unix.EOPNOTSUPP))
	if info := v.Info(); info.Discard || info.DiscardGran != 0 || info.DiscardZeroes {
		t.Errorf("info %+v, expected no discard", info)
	}
	op := Op{Kind: Discard, Len: 4096}
	if play(t, v, &op); !errors.Is(op.Err, ErrUnsupported) {
		t.Errorf("discard after a refusal: %v", op.Err)
	}
}

// TestFailedFlushSticks expects that nobody is told afterwards that his data is
// safe, while reading and plain writing go on.
func TestFailedFlushSticks(t *testing.T) {
	failures := map[string]Op{"flush": {Kind: Flush}, "fua": {Kind: Write, FUA: true, Data: make([]byte, 512)}}
	for name, failing := range failures {
		t.Run(name, func(t *testing.T) {
			v := fakeVolume(Info{Size: 1 << 20})
			play(t, v, &failing, -int64(unix.EIO))
			for _, op := range []Op{{Kind: Flush}, {Kind: Write, FUA: true, Data: make([]byte, 512)}, {Kind: WriteZeroes, FUA: true, Len: 512}} {
				if play(t, v, &op); !errors.Is(op.Err, unix.EIO) {
					t.Errorf("%v after a failed %s: %v, expected EIO", op.Kind, name, op.Err)
				}
			}
			play(t, v, &Op{Kind: Read, Data: make([]byte, 512)}, 512)
			play(t, v, &Op{Kind: Write, Data: make([]byte, 512)}, 512)
		})
	}
}

// TestFullDiskDoesNotStick expects a FUA write to work once there is room.
func TestFullDiskDoesNotStick(t *testing.T) {
	v := fakeVolume(Info{Size: 1 << 20})
	op := Op{Kind: Write, FUA: true, Data: make([]byte, 512)}
	play(t, v, &op, -int64(unix.ENOSPC))
	if play(t, v, &op, 512); op.Err != nil {
		t.Error(op.Err)
	}
}

// TestRingGivesUp completes a request as a ring does that may not wait, and
// expects a worker to finish it.
func TestRingGivesUp(t *testing.T) {
	s, err := OpenFile(FileConfig{Path: filepath.Join(t.TempDir(), "v"), Size: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	workers := evloop.NewWorkers(1)
	loop, err := evloop.New(evloop.Config{Name: "test", CPU: -1, Node: -1, Workers: workers})
	if err != nil {
		t.Fatal(err)
	}
	go loop.Run()
	for _, errno := range []unix.Errno{unix.EAGAIN, unix.EINTR, unix.ECANCELED} {
		done := make(chan struct{})
		op := &Op{Kind: Read, Data: []byte("overwrite me"), Done: func(*Op) { close(done) }}
		loop.Post(evloop.Func(func() {
			lane := &volumeLane{volume: s.(*volume), loop: loop, workers: workers, running: 1}
			lane.begin(op)
			op.lane.op, op.lane.lane = op, lane
			loop.Await(&op.lane.await, lane.expect.of(&op.lane.call))
			op.lane.Complete(-int32(errno))
		}))
		if <-done; op.Err != nil || string(op.Data) != string(make([]byte, 12)) {
			t.Errorf("after %v: %q, error %v; expected zeroes", errno, op.Data, op.Err)
		}
	}
	workers.Close()
	loop.Stop()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestLaneCloseWithOps expects a lane not to vanish under its ops.
func TestLaneCloseWithOps(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a lane with an op running was closed")
		}
	}()
	(&volumeLane{volume: fakeVolume(Info{}), running: 1}).Close()
}

// TestBitmap compares with a slice of booleans.
func TestBitmap(t *testing.T) {
	const n = 300
	rapid.Check(t, func(t *rapid.T) {
		b, err := newBitmap(n)
		if err != nil {
			t.Fatal(err)
		}
		defer b.close()
		model := make([]bool, n)
		for range 20 {
			i := rapid.Int64Range(0, n-1).Draw(t, "i")
			end := rapid.Int64Range(i, n).Draw(t, "end")
			in := rapid.Bool().Draw(t, "in")
			if in {
				b.set(i, end)
			} else {
				b.clear(i, end)
			}
			for k := i; k < end; k++ {
				model[k] = in
			}
			checkRun(t, b, model, rapid.Int64Range(0, n-1).Draw(t, "at"))
		}
	})
}

func checkRun(t *rapid.T, b bitmap, model []bool, at int64) {
	want := int64(1)
	for at+want < int64(len(model)) && model[at+want] == model[at] {
		want++
	}
	if in, n := b.run(at, int64(len(model))); in != model[at] || n != want {
		t.Fatalf("run from %d: %v for %d, expected %v for %d", at, in, n, model[at], want)
	}
}

// TestCloseAgain: Close that is repeated because it has failed leaves the file
// alone that has the descriptor's number then.
func TestCloseAgain(t *testing.T) {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pipe[1])
	v := newVolume(pipe[0], "pipe", false, slog.New(slog.DiscardHandler)) // which cannot be flushed
	v.info.Store(&Info{})
	first := v.Close()
	if !errors.Is(first, unix.EINVAL) {
		t.Fatalf("found %v, expected %v", first, unix.EINVAL)
	}
	if err := unix.Dup3(pipe[1], pipe[0], unix.O_CLOEXEC); err != nil { // the number is used again
		t.Fatal(err)
	}
	if again := v.Close(); again != first {
		t.Errorf("found %v, expected %v", again, first)
	}
	if err := unix.Close(pipe[0]); err != nil {
		t.Errorf("the other file was closed: %v", err)
	}
}
