package server

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"lunar/control"
)

// TestSocketMode: nobody but the owner may ask, and not for a moment: bind(2) makes the
// socket so, whatever the umask is.
func TestSocketMode(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	if l, err := (&net.ListenConfig{Control: ownerOnly}).Listen(t.Context(), "unix", filepath.Join(t.TempDir(), "s")); err != nil {
		t.Error(err)
	} else if info, err := os.Stat(l.Addr().String()); err != nil || info.Mode().Perm() != 0o600 || l.Close() != nil {
		t.Errorf("found %v, %v", info, err)
	}
	socket, _ := serve(t, control.Status{})
	info, err := os.Stat(socket)
	if err != nil || info.Mode().Perm() != 0o600 || info.Mode().Type() != fs.ModeSocket {
		t.Errorf("found %v, %v, expected a socket of mode 600", info.Mode(), err)
	}
}

// stale leaves a socket behind as a killed process does.
func stale(t *testing.T, path string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
}

// TestStaleSocket: what a dead process left is replaced, and Stop leaves nothing.
func TestStaleSocket(t *testing.T) {
	socket := filepath.Join(t.TempDir(), control.SocketName)
	stale(t, socket)
	s := start(t, Config{Socket: socket, Source: fixed(sample())})
	c, err := control.Dial(socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if status, err := c.Status(t.Context()); err != nil || status.Server.PID != 4711 {
		t.Errorf("found %+v, %v", status.Server, err)
	}
	stop(s)
	if _, err := os.Lstat(socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket outlived its server: %v", err)
	}
}

// TestLivingSocket: a second server on the socket is refused and the first stays.
func TestLivingSocket(t *testing.T) {
	socket, c := serve(t, sample())
	if _, err := Serve(Config{Socket: socket, Source: fixed(control.Status{})}); !errors.Is(err, ErrInUse) {
		t.Fatalf("found %v, expected %v", err, ErrInUse)
	}
	if code, _, _ := request(t, c, "GET", "http://control/v1/status"); code != http.StatusOK {
		t.Errorf("the first server answers %d after that", code)
	}
}

// TestSocketRefused: what is no socket is not touched, and errors say what was
// found.
func TestSocketRefused(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("data"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ path, want string }{
		{file, "expected a socket"},
		{filepath.Join(dir, strings.Repeat("long", 40)), "at most 107"},
		{filepath.Join(dir, "missing", "sock"), "no such file"},
	} {
		if _, err := Serve(Config{Socket: test.path, Source: fixed(control.Status{})}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: found %v, expected %q", test.path, err, test.want)
		}
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "data" {
		t.Errorf("the file has %q, %v after that", data, err)
	}
}

// TestDialAdvice: without a server the error says what to do.
func TestDialAdvice(t *testing.T) {
	dir := t.TempDir()
	dead := filepath.Join(dir, "dead")
	stale(t, dead)
	for path, want := range map[string]string{
		filepath.Join(dir, "none"): "--state-dir",
		dead:                       "has died",
	} {
		if _, err := control.Dial(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: found %v, expected %q", path, err, want)
		}
	}
}

// TestClientErrors: a problem document becomes an error with its detail.
func TestClientErrors(t *testing.T) {
	socket, _ := serve(t, control.Status{})
	c, err := control.Dial(socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Get(t.Context(), "/v1/cache", new(control.Cache)); err == nil || !strings.Contains(err.Error(), "no cache") {
		t.Errorf("found %v, expected what the problem says", err)
	}
}

// TestBounds: large headers are refused, and of too many connections the
// oldest that says nothing makes room.
func TestBounds(t *testing.T) {
	socket, c := serve(t, sample())
	r, err := http.NewRequest("GET", "http://control/v1/status", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Long", strings.Repeat("x", 2*maxHeader))
	rsp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	rsp.Body.Close()
	if rsp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("found %s for a header of %d bytes", rsp.Status, 2*maxHeader)
	}
	c.CloseIdleConnections()

	silent := make([]net.Conn, maxConnections+1)
	for i := range silent {
		if silent[i], err = net.Dial("unix", socket); err != nil {
			t.Fatal(err)
		}
		defer silent[i].Close()
	}
	if _, err := silent[0].Read(make([]byte, 1)); err != io.EOF && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the oldest of %d silent connections: %v, expected that it has ended", len(silent), err)
	}
	if code, _, _ := request(t, c, "GET", "http://control/v1/status"); code != http.StatusOK {
		t.Errorf("found %d beside silent connections", code)
	}
}

// TestStopBreaksOff: Stop waits for a request no longer than its context.
func TestStopBreaksOff(t *testing.T) {
	socket := filepath.Join(t.TempDir(), control.SocketName)
	asked, release := make(chan struct{}), make(chan struct{})
	s := start(t, Config{Socket: socket, Source: slow{asked: asked, release: release}})
	c, err := control.Dial(socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	failed := make(chan error, 1)
	go func() {
		_, err := c.Status(context.Background())
		failed <- err
	}()
	<-asked
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	s.Stop(ctx)
	if err := <-failed; err == nil {
		t.Error("the request was answered after the stop")
	}
	close(release)
}

// slow is a Source that waits.
type slow struct {
	fixed
	asked, release chan struct{}
}

func (s slow) Status() control.Status {
	close(s.asked)
	<-s.release
	return control.Status{}
}

// TestSocketThatCameMeanwhile: a server that took the place of a dead one's socket, after
// another has looked there, keeps it.
func TestSocketThatCameMeanwhile(t *testing.T) {
	socket := filepath.Join(t.TempDir(), control.SocketName)
	s := start(t, Config{Socket: socket, Source: fixed(sample())})
	defer stop(s)
	if err := takeAway(socket); !errors.Is(err, ErrInUse) {
		t.Errorf("found %v, expected that it is in use", err)
	}
	c, err := control.Dial(socket)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	dead := filepath.Join(t.TempDir(), control.SocketName)
	stale(t, dead)
	if err := takeAway(dead); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(filepath.Dir(dead)); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}
