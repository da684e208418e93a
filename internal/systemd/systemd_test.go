package systemd_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"lunar/internal/eventually"
	"lunar/internal/systemd"
	"lunar/internal/systemd/systemdtest"
)

// asService makes the test binary be the next process of a service, which prints what
// it finds under the names of its arguments.
const asService = "SYSTEMD_TEST_SERVICE"

func TestMain(m *testing.M) {
	if os.Getenv(asService) == "" {
		os.Exit(m.Run())
	}
	s := systemd.FromEnvironment()
	for _, name := range os.Args[1:] {
		f := s.Take(name)
		fmt.Print(name, " ", f != nil, " ", s.Take(name) != nil, "\n")
		if f != nil {
			l, err := net.FileListener(f)
			if err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
			fmt.Println(l.Addr())
		}
	}
	if err := s.DropOthers(os.Args[1:]); err != nil {
		fmt.Println(err)
	}
	fmt.Println(s.Watchdog(), os.Getenv("NOTIFY_SOCKET") == "", os.Getenv("LISTEN_FDS") == "")
}

// service is of this process.
func service(t *testing.T) (*systemd.Service, *systemdtest.PID1) {
	t.Helper()
	m := systemdtest.New(t)
	t.Setenv("NOTIFY_SOCKET", m.Socket)
	return systemd.FromEnvironment(), m
}

// TestTold: what a manager hears.
func TestTold(t *testing.T) {
	s, m := service(t)
	for _, err := range []error{s.Ready("a"), s.Reloading(), s.Status("b"), s.Alive(), s.Extend(time.Second, "c"), s.Stopping()} {
		if err != nil {
			t.Error(err)
		}
	}
	for _, line := range []string{"READY=1", "STATUS=a", "RELOADING=1", "STATUS=b", "WATCHDOG=1", "EXTEND_TIMEOUT_USEC=1000000", "STATUS=c", "STOPPING=1"} {
		eventually.Holds(t, line, func() bool { return m.Heard(line) })
	}
	if !slices.ContainsFunc(m.Said(), func(l string) bool { return strings.HasPrefix(l, "MONOTONIC_USEC=") }) {
		t.Errorf("found no MONOTONIC_USEC in %q", m.Said())
	}
}

// TestNobody: a process that nobody has started so tells nothing.
func TestNobody(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	s := systemd.FromEnvironment()
	for _, err := range []error{s.Ready(""), s.Reloading(), s.Stopping(), s.Keep("a", nil), s.Drop("a"), s.DropOthers(nil)} {
		if err != nil {
			t.Error(err)
		}
	}
	if s != nil || s.Take("a") != nil || s.Watchdog() != 0 {
		t.Error("found a service, expected none")
	}
}

// TestKeep: sockets are kept by name over processes, until they are dropped; a server
// that ends drops none.
func TestKeep(t *testing.T) {
	s, m := service(t)
	var at []string
	for _, name := range []string{"[::1]:1", "b", "c"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		at = append(at, l.Addr().String())
		if err := s.Keep(name, l.(*net.TCPListener)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Drop("b"); err != nil {
		t.Fatal(err)
	}
	names, files := m.Kept()
	if want := []string{"kept_[__1]_1", "kept_c"}; !slices.Equal(names, want) {
		t.Fatalf("found %q kept, expected %q", names, want)
	}
	if err := s.Stopping(); err != nil {
		t.Fatal(err)
	}
	if err := s.Drop("c"); err != nil {
		t.Fatal(err)
	}
	next := exec.Command("sh", "-c", `LISTEN_PID=$$ WATCHDOG_PID=$$ exec "$0" "$@"`, os.Args[0], "[::1]:1", "b")
	next.Env = []string{asService + "=1", "NOTIFY_SOCKET=" + m.Socket, "WATCHDOG_USEC=3000000",
		fmt.Sprint("LISTEN_FDS=", len(files)), "LISTEN_FDNAMES=" + strings.Join(names, ":")}
	next.ExtraFiles = files
	out, err := next.CombinedOutput()
	if want := "[::1]:1 true false\n" + at[0] + "\nb false false\n3s true true\n"; err != nil || string(out) != want {
		t.Errorf("the next process: found %v and %q, expected %q", err, out, want)
	}
	if names, _ := m.Kept(); !slices.Equal(names, []string{"kept_[__1]_1"}) {
		t.Errorf("after the next process: found %q kept, expected what it wants", names)
	}
}

// TestPriorities: lines of slog without time have the priorities of syslog.
func TestPriorities(t *testing.T) {
	var out bytes.Buffer
	untimed := &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}
	to := systemd.Priorities(&out)
	for _, h := range []slog.Handler{slog.NewTextHandler(to, untimed), slog.NewJSONHandler(to, untimed)} {
		log := slog.New(h).With("a", 1)
		log.Debug("x")
		log.Info("x")
		log.Warn("x")
		log.Error("two\nlines")
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, line[:min(3, len(line))])
	}
	if want := []string{"<7>", "<6>", "<4>", "<3>", "<7>", "<6>", "<4>", "<3>"}; !slices.Equal(got, want) {
		t.Errorf("found %q, expected priorities %q", out.String(), want)
	}
}
