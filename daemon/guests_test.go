package daemon

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lunar/internal/cli"
	"lunar/internal/initiator"
)

// loginFrom logs in from an address of the loopback network.
func loginFrom(t *testing.T, portal, addr string, o initiator.Options) error {
	t.Helper()
	_, err := dialFrom(t, portal, addr, o)
	return err
}

// dialFrom is loginFrom for who goes on with the connection.
func dialFrom(t *testing.T, portal, addr string, o initiator.Options) (*initiator.Conn, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(addr)}}
	nc, err := d.DialContext(ctx, "tcp", portal)
	if err != nil {
		t.Fatal(err)
	}
	c := initiator.NewConn(nc)
	c.Timeout = 30 * time.Second
	t.Cleanup(func() { c.Close() })
	return c, c.Login(o)
}

const guestsConfig = `
server: {limits: {sessions: 8}}
portal-groups: {a: {listen: ["127.0.0.1:0"]}}
volumes: {v: {type: ram, size: 1MiB}}
targets:
  iqn.2026-11.test:t: {luns: {0: v}}
`

// TestGuestsComeBack: who had sessions when the server was stopped finds its places
// after a start, whatever others do meanwhile.
func TestGuestsComeBack(t *testing.T) {
	s := serveLive(t, guestsConfig)
	options := func(kind string, n int) initiator.Options {
		return initiator.Options{Target: "iqn.2026-11.test:t", Initiator: fmt.Sprintf("iqn.2026-11.test:%s%d", kind, n)}
	}
	for n := range 6 {
		if err := loginFrom(t, s.portal, "127.0.0.2", options("host", n)); err != nil {
			t.Fatal(err)
		}
	}
	if status := s.serving.stop(); status != cli.ExitOK {
		t.Fatalf("exit status %d\n%s", status, s.log)
	}
	again := serve(t, "-c", s.file, "--state-dir", s.dir)
	strangers := 0
	for n := range 10 {
		if loginFrom(t, again.portal, "127.0.0.66", options("stranger", n)) == nil {
			strangers++
		}
	}
	if strangers != 2 {
		t.Errorf("strangers got %d places, expected 2", strangers)
	}
	for n := range 6 {
		if err := loginFrom(t, again.portal, "127.0.0.2", options("host", n)); err != nil {
			t.Errorf("host %d: %v", n, err)
		}
	}
}

// TestDamagedGuests: a file that cannot be read costs kept places and nothing else.
func TestDamagedGuests(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "tgtd.yaml")
	writeFile(t, file, guestsConfig)
	if err := os.WriteFile(filepath.Join(dir, "guests"), []byte(`[{"name":"iqn.a"`), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serve(t, "-c", file, "--state-dir", dir)
	dial(t, s.portal, initiator.Options{Target: "iqn.2026-11.test:t"})
	if log := s.log.String(); !strings.Contains(log, "no places are reserved") {
		t.Errorf("found no warning in\n%s", log)
	}
}
