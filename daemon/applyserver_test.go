package daemon

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"

	"lunar/conf"
	"lunar/internal/cli"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
)

// metricsAt asks for the metrics at an address; an error says that nobody answers.
func metricsAt(addr string) (string, error) {
	r, err := http.Get("http://" + addr + "/metrics")
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	return string(text), err
}

// TestApplyServer: how the server waits, logs, tells of itself and sends changes while
// sessions go on, as a whole or not at all.
func TestApplyServer(t *testing.T) {
	l := serveLive(t, liveConfig)
	c := dial(t, l.portal, initiator.Options{Target: "iqn.2026-11.test:u"})
	settle(t, c, 0)
	first, second := freePort(t), freePort(t)
	server := func(keys string) string { return "server: {" + keys + "}\nportal-groups:" }
	keys := server("poll: off, congestion: reno, metrics: '" + first + "'")
	l.apply(cli.ExitOK, []string{"portal-groups:", "log: {format: json}\n" + keys},
		`server.poll: "off", was "adaptive"`, `server.congestion: "reno"`, "server.metrics: "+first, `log.format: "json", was "text"`)
	if text, err := metricsAt(first); err != nil || !strings.Contains(text, "lunar_") {
		t.Errorf("found %q, %v, expected metrics", text, err)
	}
	l.sense(c, 0, 0, 0)
	dial(t, l.portal, initiator.Options{Target: "iqn.2026-11.test:u", ISID: [6]byte{0x80, 9}})
	eventually.Says(t, l.log.String, `"msg":"session opened"`)
	for _, refused := range []struct{ with, want string }{
		{server("congestion: no-such, metrics: '" + second + "'"), `"no-such"`},
		{server("congestion: cubic, metrics: '192.0.2.77:1'"), "192.0.2.77:1"},
	} {
		l.apply(cli.ExitFailure, []string{keys, refused.with}, refused.want, "was not applied, and nothing was changed")
		if _, err := metricsAt(first); err != nil {
			t.Errorf("found %v, expected the metrics where they were", err)
		}
	}
	l.apply(cli.ExitOK, []string{keys, server("poll: adaptive, metrics: '" + second + "'")}, "server.metrics: "+second)
	if _, err := metricsAt(first); err == nil {
		t.Error("found metrics where they were, expected them elsewhere")
	}
	if _, err := metricsAt(second); err != nil {
		t.Error(err)
	}
	l.sense(c, 0, 0, 0)
}

// TestApplyPlaces: shares of places, and the networks whose initiators come before all
// others, count from the next login on.
func TestApplyPlaces(t *testing.T) {
	limits := func(keys string) string { return "server: {limits: {sessions: 2, " + keys + "}}\n" }
	all, half := limits("sessions-per-address: 2, sessions-per-network: 2"), limits("sessions-per-address: 1, sessions-per-network: 2")
	known := limits("sessions-per-address: 1, sessions-per-network: 2, known-networks: [127.0.3.0/24]")
	l := serveLive(t, all+liveConfig)
	login := func(id byte, from string) (*initiator.Conn, error) {
		return dialFrom(t, l.portal, from, initiator.Options{Target: "iqn.2026-11.test:u", ISID: [6]byte{0x80, id}})
	}
	good := func(id byte, from string) *initiator.Conn {
		t.Helper()
		c, err := login(id, from)
		if err != nil {
			t.Fatalf("from %s: %v", from, err)
		}
		return c
	}
	refused := func(id byte, from string) {
		t.Helper()
		if _, err := login(id, from); err == nil || !strings.Contains(err.Error(), "0302") {
			t.Fatalf("from %s: found %v, expected that there is no place", from, err)
		}
	}
	first, second := good(1, "127.0.1.1"), good(2, "127.0.1.1")
	settle(t, first, 0)
	refused(3, "127.0.2.1")
	l.apply(cli.ExitOK, []string{all, half}, "server.limits.sessions-per-address: 1, was 2")
	other := good(3, "127.0.2.1")
	settle(t, other, 0)
	if _, err := second.Command(make([]byte, 6), 0, nil, 0); err == nil {
		t.Error("found a session beyond the share, expected it to be dropped")
	}
	l.sense(first, 0, 0, 0)
	refused(4, "127.0.3.1")
	l.apply(cli.ExitOK, []string{half, known}, "server.limits.known-networks: ")
	settle(t, good(4, "127.0.3.1"), 0)
	refused(5, "127.0.3.1")
	l.apply(cli.ExitOK, []string{known, half}, "server.limits.known-networks: ")
	refused(6, "127.0.3.2")
}

// TestAppliesAtOnce: changes that come together are made one after the other, and none
// any more once the server ends.
func TestAppliesAtOnce(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 5))
	c := serveChurned(t, churnConfig(random))
	var configs []*conf.Config
	for range 4 {
		configs = append(configs, c.parse(churnConfig(random), c.dir))
	}
	var applies sync.WaitGroup
	applied := make([]error, len(configs))
	for i, cfg := range configs {
		applies.Go(func() {
			_, applied[i] = c.apply(request{name: fmt.Sprint("chance ", i), allowed: everythingIn(cfg)}, cfg)
		})
	}
	applies.Wait()
	running := c.daemon.config.Load()
	found := false
	for i, cfg := range configs {
		if applied[i] == nil && cfg == running {
			found = true
		}
	}
	if !found {
		t.Errorf("found another configuration running than one that was applied: %v", applied)
	}
	c.kill()
	if _, err := c.apply(request{name: "late"}, configs[0]); err == nil || !strings.Contains(err.Error(), "the server is stopping") {
		t.Errorf("found %v, expected that nothing changes any more", err)
	}
}
