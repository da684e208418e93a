// Package numatest runs tests on the process's first thread, and lists its threads.
package numatest

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// OnFirstThread runs f on the first thread of the process, to which it is locked.
func OnFirstThread(t testing.TB, f func()) {
	t.Helper()
	release := make(chan struct{})
	defer close(release)
	// Who comes to another thread keeps it, so that the next one has to take what is
	// left. The pause is for the thread that waits for files and timers: it might be
	// the first.
	for range 1000 {
		there := make(chan bool)
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			if unix.Gettid() != unix.Getpid() {
				there <- false
				<-release
				return
			}
			defer func() { there <- true }()
			f()
		}()
		if <-there {
			return
		}
		time.Sleep(time.Microsecond)
	}
	t.Fatal("no goroutine came to the first thread of the process: expected it to be free")
}

// Thread is one of the process's.
type Thread struct {
	Name string
	CPUs []int // that it may run on, ascending
}

// Threads are all threads of the process.
func Threads(t testing.TB) (all []Thread) {
	t.Helper()
	paths, err := filepath.Glob("/proc/self/task/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		tid, err := strconv.Atoi(filepath.Base(path))
		if err != nil {
			t.Fatal(err)
		}
		name, err := os.ReadFile(filepath.Join(path, "comm"))
		var set unix.CPUSet
		if err != nil || unix.SchedGetaffinity(tid, &set) != nil {
			continue // it has just ended
		}
		th := Thread{Name: strings.TrimSpace(string(name))}
		for cpu := range 8 * int(unsafe.Sizeof(set)) {
			if set.IsSet(cpu) {
				th.CPUs = append(th.CPUs, cpu)
			}
		}
		all = append(all, th)
	}
	return all
}
