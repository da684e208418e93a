package confine

import (
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// childVariable makes the test binary confine itself: nothing of it can be undone.
const childVariable = "CONFINE_TEST_CHILD"

func TestMain(m *testing.M) {
	if what := os.Getenv(childVariable); what != "" {
		children[what]()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var children = map[string]func(){"cost": cost, "enforce": enforced, "trap": trapped, "dumps": undumped}

// child runs one of children, and returns what it printed.
func child(t *testing.T, what string) (string, error) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+what, "CONFINE_TEST_DIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "NO FILTER") {
		t.Skipf("this kernel or container takes no filter: %s", out)
	}
	return string(out), err
}

// enforced prints what a confined process could and could not do, line by line.
func enforced() {
	before := make(chan func()) // a thread that is there before the filter
	go func() {
		runtime.LockOSThread()
		for f := range before {
			f()
		}
	}()
	var done sync.WaitGroup
	on := func(f func()) { done.Add(1); before <- func() { defer done.Done(); f() }; done.Wait() }
	on(func() {})
	if err := Filter(Enforce); err != nil {
		fmt.Println("NO FILTER", err)
		return
	}
	refused := map[string]func() error{
		"exec":    func() error { return exec.Command("/bin/true").Run() },
		"execve":  func() error { return unix.Exec("/bin/true", []string{"true"}, nil) },
		"ptrace":  func() error { return unix.PtraceAttach(os.Getppid()) },
		"unshare": func() error { return unix.Unshare(unix.CLONE_NEWUSER) },
		"mount":   func() error { return unix.Mount("none", "/", "tmpfs", 0, "") },
		"fork": func() error {
			_, _, e := unix.RawSyscall6(unix.SYS_CLONE, unix.CLONE_NEWUSER|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
			return e
		},
		"kill": func() error { return unix.Kill(os.Getppid(), 0) },
	}
	for name, try := range refused {
		if err := try(); !errors.Is(err, unix.EPERM) {
			fmt.Println(name, "found", err)
		}
		on(func() {
			if err := try(); !errors.Is(err, unix.EPERM) {
				fmt.Println(name, "on another thread: found", err)
			}
		})
	}
	if err := work(os.Getenv("CONFINE_TEST_DIR")); err != nil {
		fmt.Println("work: found", err)
	}
	fmt.Println("end")
}

// work is some of what a server does.
func work(dir string) error {
	path := filepath.Join(dir, "f")
	err := errors.Join(os.WriteFile(path, []byte("data"), 0o600), os.Rename(path, path+".new"), os.Remove(path+".new"))
	l, failed := net.Listen("tcp", "127.0.0.1:0")
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	defer l.Close()
	var threads sync.WaitGroup
	for range 8 {
		threads.Go(func() { // with a new thread each
			runtime.LockOSThread()
			if conn, err := net.Dial("tcp", l.Addr().String()); err == nil {
				conn.Close()
			}
		})
	}
	for range 8 {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		conn.Close()
	}
	threads.Wait()
	return nil
}

// TestEnforce: what a server has no use for fails on all threads, those included that
// were there before, and what it does goes on.
func TestEnforce(t *testing.T) {
	if out, err := child(t, "enforce"); err != nil || out != "end\n" {
		t.Errorf("found %v and %s", err, out)
	}
}

func trapped() {
	if err := Filter(Trap); err != nil {
		fmt.Println("NO FILTER", err)
		return
	}
	_ = unix.Unshare(0)
	fmt.Println("it went on")
}

// TestCallsOffTheListAreTrapped: tests find calls that are not on the list by the stack that made them.
func TestCallsOffTheListAreTrapped(t *testing.T) {
	if out, err := child(t, "trap"); err == nil || !strings.Contains(out, "SIGSYS") || !strings.Contains(out, "Unshare") {
		t.Errorf("found %v and %s", err, out)
	}
}

func undumped() {
	for _, allowed := range []bool{true, false} {
		err := CoreDumps(allowed)
		state, failed := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
		fmt.Println(allowed, state, err, failed)
	}
}

// TestCoreDumps asks the kernel.
func TestCoreDumps(t *testing.T) {
	if out, err := child(t, "dumps"); err != nil || out != "true 1 <nil> <nil>\nfalse 0 <nil> <nil>\n" {
		t.Errorf("found %v and %s", err, out)
	}
}

// cost prints the nanoseconds of a system call of the data path without a filter, and
// with it.
func cost() {
	const calls = 1 << 20
	ep, err := unix.EpollCreate1(0)
	if err != nil {
		fmt.Println(err)
		return
	}
	measure := func() float64 {
		best := math.MaxFloat64
		for range 8 {
			began := time.Now()
			for range calls / 8 {
				_, _, _ = unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(ep), uintptr(unsafe.Pointer(&unix.EpollEvent{})), 1, 0, 0, 0)
			}
			best = min(best, float64(time.Since(began).Nanoseconds())/(calls/8))
		}
		return best
	}
	runtime.LockOSThread()
	without := measure()
	if err := Filter(Enforce); err != nil {
		fmt.Println("NO FILTER", err)
		return
	}
	fmt.Println(without, measure())
}

// BenchmarkFilter: what the filter adds to a system call of the data path, the best of
// eight runs each.
func BenchmarkFilter(b *testing.B) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"=cost")
	out, err := cmd.CombinedOutput()
	var without, with float64
	if n, _ := fmt.Sscan(string(out), &without, &with); err != nil || n != 2 {
		b.Skipf("found %v and %s", err, out)
	}
	b.ReportMetric(without, "ns/call-without")
	b.ReportMetric(with, "ns/call-with")
}
