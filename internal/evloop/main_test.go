package evloop

import (
	"io"
	"log/slog"
	"runtime"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func newLoop(t testing.TB, config Config) *Loop {
	t.Helper()
	if config.Logger == nil {
		config.Logger = quiet()
	}
	if config.CPU == 0 {
		config.CPU = -1
	}
	l, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// start returns a running loop that the test's end stops.
func start(t testing.TB, config Config) *Loop {
	t.Helper()
	l := newLoop(t, config)
	go l.Run()
	t.Cleanup(l.Stop)
	return l
}

// driven returns a loop whose thread is the test's: the test calls pass itself.
func driven(t testing.TB, config Config) *Loop {
	t.Helper()
	l := newLoop(t, config)
	l.begin()
	runtime.LockOSThread()
	l.enter()
	t.Cleanup(func() {
		l.drain()
		l.finish(true)
		runtime.UnlockOSThread()
	})
	return l
}

// on runs f on the loop's thread and waits for it.
func on(l *Loop, f func()) {
	done := make(chan struct{})
	l.Post(Func(func() {
		defer close(done)
		f()
	}))
	<-done
}

type noop struct{}

func (noop) Run() {}

// pipe returns a non-blocking pipe.
func pipe(t testing.TB) (r, w int) {
	t.Helper()
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = unix.Close(fds[0])
		_ = unix.Close(fds[1])
	})
	return fds[0], fds[1]
}

func write(t testing.TB, fd int, text string) {
	t.Helper()
	if _, err := unix.Write(fd, []byte(text)); err != nil {
		t.Fatal(err)
	}
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
