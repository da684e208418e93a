package evloop

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"lunar/internal/numa"
	"lunar/internal/uring"
)

// request reads a page of a file; then runs on completion.
type request struct {
	uring.Op
	res  int32
	then func()
}

func (r *request) Complete(res int32) {
	r.res = res
	r.then()
}

func pages(t testing.TB, n int) (*os.File, []byte) {
	t.Helper()
	data := make([]byte, n*4096)
	for i := range data {
		data[i] = byte(i>>12 ^ i)
	}
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f, data
}

func needRing(t testing.TB, l *Loop) {
	t.Helper()
	if l.Ring() == nil {
		t.Skip("this machine has no io_uring")
	}
}

// Requests of one pass, more than the ring holds, complete on the loop's thread
// while the loop is otherwise idle.
func TestRingReads(t *testing.T) {
	l := start(t, Config{RingEntries: 4, Buffers: 4 << 20})
	needRing(t, l)
	const n = 100
	f, data := pages(t, n)
	left, done := n, make(chan struct{})
	on(l, func() {
		for i := range n {
			b := l.Pool().Get(4096)
			r := &request{}
			r.then = func() {
				if !l.OnThread() || r.res != 4096 || !bytes.Equal(b.Bytes(), data[i*4096:][:4096]) {
					t.Errorf("read %d: result %d, on the thread %v, or other bytes", i, r.res, l.OnThread())
				}
				b.Release()
				if left--; left == 0 {
					close(done)
				}
			}
			r.Read(int(f.Fd()), b.Bytes(), int64(i)*4096)
			l.Ring().Queue(&r.Op, r)
		}
	})
	<-done
}

// Requests whose data comes later wake the sleeping loop, and all complete although
// the kernel does its deferred work in bounded portions.
func TestRingWakesTheLoop(t *testing.T) {
	const n = 100
	l := start(t, Config{RingEntries: 128})
	needRing(t, l)
	rfd, wfd := pipe(t)
	if err := unix.SetNonblock(rfd, false); err != nil { // a non-blocking one would give EAGAIN
		t.Fatal(err)
	}
	got, left, done := make([]byte, n), n, make(chan struct{})
	var sleeps uint64
	on(l, func() {
		for i := range n {
			r := &request{}
			r.then = func() {
				if r.res != 1 {
					t.Errorf("read %d: result %d, expected 1", i, r.res)
				}
				if left--; left == 0 {
					close(done)
				}
			}
			r.Read(rfd, got[i:i+1], -1)
			l.Ring().Queue(&r.Op, r)
		}
		sleeps = l.Stats().Sleeps
	})
	for l.Stats().Sleeps == sleeps {
		runtime.Gosched()
	}
	write(t, wfd, strings.Repeat("x", n))
	<-done
	if want := strings.Repeat("x", n); string(got) != want {
		t.Errorf("read %q, expected %q", got, want)
	}
}

// Pool buffers meet the alignment that O_DIRECT asks for.
func TestDirectReads(t *testing.T) {
	l := start(t, Config{RingEntries: 8, Buffers: 4 << 20})
	needRing(t, l)
	f, data := pages(t, 64)
	fd, err := unix.Open(f.Name(), unix.O_RDONLY|unix.O_DIRECT|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skip("the file system of the test directory has no O_DIRECT: ", err)
	}
	defer unix.Close(fd)
	done := make(chan struct{})
	on(l, func() {
		b := l.Pool().Get(len(data))
		r := &request{}
		r.then = func() {
			if r.res != int32(len(data)) || !bytes.Equal(b.Bytes(), data) {
				t.Errorf("result %d, expected the %d bytes of the file", r.res, len(data))
			}
			b.Release()
			close(done)
		}
		r.Read(fd, b.Bytes(), 0)
		l.Ring().Queue(&r.Op, r)
	})
	<-done
}

// Stop waits for requests in flight, those that completions start included, so
// that the kernel never writes into freed buffers.
func TestStopDrainsTheRing(t *testing.T) {
	l := newLoop(t, Config{RingEntries: 2, Buffers: 1 << 20})
	go l.Run()
	needRing(t, l)
	f, _ := pages(t, 1)
	completed := 0
	on(l, func() {
		b := l.Pool().Get(4096)
		r := &request{}
		r.then = func() {
			if completed++; completed == 5 {
				b.Release()
				return
			}
			r.Read(int(f.Fd()), b.Bytes(), 0)
			l.Ring().Queue(&r.Op, r)
		}
		r.Read(int(f.Fd()), b.Bytes(), 0)
		l.Ring().Queue(&r.Op, r)
		l.Stop()
	})
	<-l.ended
	if completed != 5 || l.Pool().Size() != 0 {
		t.Errorf("%d completions, pool of %d bytes; expected 5, and none left mapped", completed, l.Pool().Size())
	}
}

// A thread without io_uring gets a loop without a ring and one line that says why.
func TestRingRefused(t *testing.T) {
	var log bytes.Buffer
	var l *Loop
	numa.OwnThread(func() { // with which the filter ends
		if err := forbid(unix.SYS_IO_URING_SETUP); err != nil {
			t.Log("cannot install a seccomp filter: ", err)
			return
		}
		l = newLoop(t, Config{RingEntries: 8, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	})
	if l == nil {
		t.Skip("needs seccomp")
	}
	go l.Run()
	defer l.Stop()
	on(l, func() {})
	if l.Ring() != nil {
		t.Error("a ring although the kernel refuses io_uring_setup")
	}
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "operation not permitted") {
		t.Errorf("log %q, expected one line with the reason", text)
	}
}

// forbid makes one system call of this thread fail with EPERM.
func forbid(nr uint32) error {
	const eperm = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // seccomp_data.nr
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: nr, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: eperm},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
}
