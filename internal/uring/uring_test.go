package uring

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// result is a Completion that remembers.
type result struct {
	op    Op
	res   int32
	calls int
	then  func()
}

func (r *result) Complete(res int32) {
	r.res = res
	r.calls++
	if r.then != nil {
		r.then()
	}
}

// newRing returns an enabled ring on the test's locked thread.
func newRing(t testing.TB, entries uint32) *Ring {
	t.Helper()
	r, err := Setup(entries)
	if err != nil {
		t.Skip("this machine has no io_uring: ", err)
	}
	runtime.LockOSThread()
	if err := r.Enable(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		runtime.UnlockOSThread()
	})
	return r
}

func tempFile(t testing.TB, content []byte) *os.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// run queues one prepared Op and drains the ring.
func run(t *testing.T, r *Ring, o *result) int32 {
	t.Helper()
	before := o.calls
	r.Queue(&o.op, o)
	if err := r.Drain(); err != nil {
		t.Fatal(err)
	}
	if o.calls != before+1 || o.op.Pending() || r.InFlight() != 0 {
		t.Fatalf("%d completions, pending %v, %d in flight; expected 1, false, 0", o.calls-before, o.op.Pending(), r.InFlight())
	}
	return o.res
}

func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i>>8 ^ i)
	}
	return b
}

func TestResults(t *testing.T) {
	r := newRing(t, 8)
	data := pattern(10000)
	f := tempFile(t, data)
	fd := int(f.Fd())
	b := make([]byte, 4096)
	for _, c := range []struct {
		name    string
		prepare func(*Op)
		want    int32
	}{
		{"read", func(o *Op) { o.Read(fd, b, 4096) }, 4096},
		{"short read at the end", func(o *Op) { o.Read(fd, b, 8192) }, 10000 - 8192},
		{"read at end of file", func(o *Op) { o.Read(fd, b, 10000) }, 0},
		{"read beyond end of file", func(o *Op) { o.Read(fd, b, 1<<40) }, 0},
		{"read of nothing", func(o *Op) { o.Read(fd, nil, 0) }, 0},
		{"read of no descriptor", func(o *Op) { o.Read(-1, b, 0) }, -int32(unix.EBADF)},
		{"write to no descriptor", func(o *Op) { o.Write(1<<20, b, 0, 0) }, -int32(unix.EBADF)},
		{"write with unknown flags", func(o *Op) { o.Write(fd, b, 0, 1<<30) }, -int32(unix.EOPNOTSUPP)},
		{"fsync", func(o *Op) { o.Fsync(fd, false) }, 0},
		{"fdatasync", func(o *Op) { o.Fsync(fd, true) }, 0},
		{"fsync of no descriptor", func(o *Op) { o.Fsync(-1, true) }, -int32(unix.EBADF)},
		{"fallocate of nothing", func(o *Op) { o.Fallocate(fd, 0, 0, 0) }, -int32(unix.EINVAL)},
	} {
		var o result
		c.prepare(&o.op)
		if got := run(t, r, &o); got != c.want {
			t.Errorf("%s: %d, expected %d", c.name, got, c.want)
		}
	}
}

func TestReadSeesTheFile(t *testing.T) {
	r := newRing(t, 8)
	data := pattern(20000)
	f := tempFile(t, data)
	var o result
	whole := make([]byte, len(data))
	o.op.Read(int(f.Fd()), whole, 0)
	if got := run(t, r, &o); got != int32(len(data)) || !bytes.Equal(whole, data) {
		t.Errorf("read %d bytes, equal %v", got, bytes.Equal(whole, data))
	}
	a, b := make([]byte, 5000), make([]byte, 15000)
	o.op.Readv(int(f.Fd()), iovecs(a, b), 0, 0)
	if got := run(t, r, &o); got != int32(len(data)) || !bytes.Equal(append(a, b...), data) {
		t.Errorf("readv %d bytes, or others than written", got)
	}
}

func TestWriteReachesTheFile(t *testing.T) {
	r := newRing(t, 8)
	f := tempFile(t, nil)
	data := pattern(9000)
	var o result
	o.op.Write(int(f.Fd()), data, 0, unix.RWF_DSYNC)
	if got := run(t, r, &o); got != int32(len(data)) {
		t.Fatalf("write: %d, expected %d", got, len(data))
	}
	o.op.Writev(int(f.Fd()), iovecs(data[:100], data[100:300]), 9000, 0)
	if got := run(t, r, &o); got != 300 {
		t.Fatalf("writev: %d, expected 300", got)
	}
	got, err := os.ReadFile(f.Name())
	if want := append(data, data[:300]...); err != nil || !bytes.Equal(got, want) {
		t.Errorf("file has %d bytes (%v), expected the %d written", len(got), err, len(want))
	}
}

func TestFallocate(t *testing.T) {
	r := newRing(t, 8)
	data := pattern(3 * 4096)
	f := tempFile(t, data)
	var o result
	o.op.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 4096, 4096)
	switch got := run(t, r, &o); got {
	case 0:
	case -int32(unix.EOPNOTSUPP):
		t.Skip("the file system of the test directory cannot punch holes")
	default:
		t.Fatalf("punch hole: %d, expected 0", got)
	}
	clear(data[4096:8192])
	if got, err := os.ReadFile(f.Name()); err != nil || !bytes.Equal(got, data) {
		t.Errorf("a hole of one page: %v, or other bytes than expected", err)
	}
	o.op.Fallocate(int(f.Fd()), 0, 0, 5<<20)
	if got := run(t, r, &o); got != 0 {
		t.Fatalf("allocate: %d, expected 0", got)
	}
	if info, err := f.Stat(); err != nil || info.Size() != 5<<20 {
		t.Errorf("size after allocation is %d (%v), expected %d", info.Size(), err, 5<<20)
	}
}

// More requests than the ring has room for all complete, each once.
func TestOverfullRing(t *testing.T) {
	r := newRing(t, 4)
	data := pattern(1 << 20)
	f := tempFile(t, data)
	ops := make([]result, 256)
	bufs := make([][]byte, len(ops))
	for i := range ops {
		bufs[i] = make([]byte, 4096)
		ops[i].op.Read(int(f.Fd()), bufs[i], int64(i)*4096)
		r.Queue(&ops[i].op, &ops[i])
	}
	if r.InFlight() > 4 {
		t.Errorf("%d in flight before the first Submit, expected at most the 4 entries", r.InFlight())
	}
	if err := r.Drain(); err != nil {
		t.Fatal(err)
	}
	for i := range ops {
		if ops[i].calls != 1 || ops[i].res != 4096 || !bytes.Equal(bufs[i], data[i*4096:][:4096]) {
			t.Errorf("read %d: %d completions, result %d, expected 1 and 4096 bytes of the file", i, ops[i].calls, ops[i].res)
		}
	}
}

// A Complete may queue its own Op again.
func TestRequeueFromComplete(t *testing.T) {
	r := newRing(t, 1)
	fd, b := int(tempFile(t, pattern(4096)).Fd()), make([]byte, 512)
	var o result
	o.then = func() {
		if o.calls < 10 {
			o.op.Read(fd, b, int64(o.calls)*512)
			r.Queue(&o.op, &o)
		}
	}
	o.op.Read(fd, b, 0)
	r.Queue(&o.op, &o)
	if err := r.Drain(); err != nil {
		t.Fatal(err)
	}
	if o.calls != 10 {
		t.Errorf("%d completions, expected 10", o.calls)
	}
}

// The eventfd becomes readable, for one who already sleeps on it, when a read of an
// empty pipe gets data.
func TestWakeFDSignalsCompletions(t *testing.T) {
	r := newRing(t, 4)
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pipe[0])
	defer unix.Close(pipe[1])
	var o result
	b := make([]byte, 8)
	o.op.Read(pipe[0], b, -1)
	r.Queue(&o.op, &o)
	if err := r.Submit(); err != nil {
		t.Fatal(err)
	}
	if readable(t, r.WakeFD(), 0) {
		t.Error("eventfd is readable without a completion")
	}
	time.AfterFunc(time.Millisecond, func() { _, _ = unix.Write(pipe[1], []byte("ring")) })
	for o.calls == 0 {
		if !readable(t, r.WakeFD(), 10_000) {
			t.Fatal("eventfd is not readable although its read can complete")
		}
		if _, err := r.Reap(); err != nil {
			t.Fatal(err)
		}
	}
	if o.res != 4 || string(b[:4]) != "ring" {
		t.Errorf("read %d bytes %q, expected 4 %q", o.res, b[:4], "ring")
	}
}

// pipeRead queues a read of an empty pipe and returns the function that gives it data.
func pipeRead(t *testing.T, r *Ring, o *result) (feed func()) {
	t.Helper()
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = unix.Close(pipe[0])
		_ = unix.Close(pipe[1])
	})
	o.op.Read(pipe[0], make([]byte, 8), -1)
	r.Queue(&o.op, o)
	if err := r.Submit(); err != nil {
		t.Fatal(err)
	}
	return func() {
		if _, err := unix.Write(pipe[1], []byte("ring")); err != nil {
			t.Fatal(err)
		}
	}
}

// A ring that was told not to signal does not, and is Ready all the same; told to
// signal again it does so for the next completion.
func TestWakeLeavesSignalsOut(t *testing.T) {
	r := newRing(t, 4)
	if !r.Deferred() {
		t.Skip("this kernel's rings always signal")
	}
	var quiet, loud result
	r.Wake(false)
	pipeRead(t, r, &quiet)()
	if !r.Ready() || readable(t, r.WakeFD(), 0) {
		t.Error("expected a completion without a signal")
	}
	if err := r.Drain(); err != nil {
		t.Fatal(err)
	}
	r.Wake(true)
	pipeRead(t, r, &loud)()
	if !readable(t, r.WakeFD(), 10_000) {
		t.Error("no signal after Wake(true)")
	}
	if err := r.Drain(); err != nil {
		t.Fatal(err)
	}
}

// A Reap that enters the kernel submits as well.
func TestReapSubmits(t *testing.T) {
	r := newRing(t, 4)
	if !r.Deferred() {
		t.Skip("this kernel's rings complete without being asked")
	}
	var first, second result
	pipeRead(t, r, &first)()
	b := make([]byte, 4096)
	second.op.Read(int(tempFile(t, pattern(4096)).Fd()), b, 0)
	r.Queue(&second.op, &second)
	if _, err := r.Reap(); err != nil || first.calls != 1 || r.Unsubmitted() {
		t.Errorf("%v, %d completions, unsubmitted %v; expected none, 1, false", err, first.calls, r.Unsubmitted())
	}
	if err := r.Drain(); err != nil || second.res != 4096 {
		t.Errorf("%v, %d bytes read; expected none, 4096", err, second.res)
	}
}

// TestHasten: the first request leaves at once, the others in parts that grow.
func TestHasten(t *testing.T) {
	r := newRing(t, 64)
	f := tempFile(t, pattern(4096))
	var parts []int
	var all [64]result
	for i := range all {
		o := &all[i]
		o.op.Read(int(f.Fd()), make([]byte, 64), int64(64*i))
		r.Queue(&o.op, o)
		queued := int(r.queued)
		if r.Hasten(); !r.Unsubmitted() {
			parts = append(parts, queued)
		}
	}
	if want := []int{1, 1, 1, 1, 1, 2, 2, 3, 3, 4, 5, 6, 8, 10, 12}; !slices.Equal(parts, want) {
		t.Errorf("parts of %v requests left, expected %v", parts, want)
	}
	if err := r.Drain(); err != nil {
		t.Fatal(err)
	}
	for i := range all {
		if all[i].res != 64 {
			t.Errorf("request %d: %d, expected 64", i, all[i].res)
		}
	}
}

func readable(t *testing.T, fd, ms int) bool {
	t.Helper()
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(poll, ms)
		if err == nil {
			return n == 1
		}
		if err != unix.EINTR {
			t.Fatal(err)
		}
	}
}

func TestMisusePanics(t *testing.T) {
	r := newRing(t, 4)
	fd, b := int(tempFile(t, pattern(10)).Fd()), make([]byte, 10)
	var o result
	o.op.Read(fd, b, 0)
	r.Queue(&o.op, &o)
	expectPanic(t, func() { r.Queue(&o.op, &o) })
	expectPanic(t, func() { o.op.Read(fd, b, 0) })
	if err := r.Drain(); err != nil {
		t.Fatal(err)
	}
}

func TestSetupRefusesNoEntries(t *testing.T) {
	if r, err := Setup(0); err == nil {
		t.Error("a ring of 0 entries", r.WakeFD())
	}
}

// The operator has to learn why there is no io_uring.
func TestRefusalExplains(t *testing.T) {
	for _, c := range []struct {
		errno unix.Errno
		says  string
	}{
		{unix.ENOSYS, "seccomp"},
		{unix.EPERM, disabledFile},
		{unix.ENOMEM, "memlock"},
		{unix.EINVAL, "5.10"},
	} {
		err := refusal(c.errno)
		if !errors.Is(err, c.errno) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: %q, expected it to wrap the errno and say %q", c.errno, err, c.says)
		}
	}
}

// Every tier that this kernel accepts does the same.
func TestTiers(t *testing.T) {
	all := tiers
	defer func() { tiers = all }()
	for _, flags := range all {
		tiers = []uint32{flags}
		t.Run("", func(t *testing.T) {
			r := newRing(t, 2)
			if want := flags&setupDeferTaskrun != 0; r.Deferred() != want {
				t.Errorf("deferred %v, expected %v", r.Deferred(), want)
			}
			var o result
			b := make([]byte, 4096)
			o.op.Read(int(tempFile(t, pattern(4096)).Fd()), b, 0)
			if got := run(t, r, &o); got != 4096 || !bytes.Equal(b, pattern(4096)) {
				t.Errorf("flags %#x: read %d bytes, expected the 4096 of the file", flags, got)
			}
		})
	}
}

func TestRoundTripAllocatesNothing(t *testing.T) {
	r := newRing(t, 8)
	fd, b := int(tempFile(t, pattern(4096)).Fd()), make([]byte, 4096)
	var o result
	n := testing.AllocsPerRun(100, func() {
		o.op.Read(fd, b, 0)
		r.Queue(&o.op, &o)
		_ = r.Drain()
	})
	if n != 0 || o.res != 4096 {
		t.Errorf("%v allocations and result %d, expected 0 and 4096", n, o.res)
	}
}

func TestCloseTwice(t *testing.T) {
	r := newRing(t, 1)
	for range 2 {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

func iovecs(bufs ...[]byte) []unix.Iovec {
	iov := make([]unix.Iovec, len(bufs))
	for i, b := range bufs {
		iov[i].Base = &b[0]
		iov[i].SetLen(len(b))
	}
	return iov
}

func expectPanic(t *testing.T, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	f()
}
