package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"lunar/conf"
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
	keys := server("poll: off, batching: off, max-delay: 10us, congestion: reno, metrics: '" + first + "'")
	l.apply(exitOK, []string{"portal-groups:", "log: {format: json}\n" + keys},
		`server.poll: "off", was "adaptive"`, "server.batching: off", "server.max-delay: 10", `server.congestion: "reno"`, "server.metrics: "+first, `log.format: "json", was "text"`)
	if text, err := metricsAt(first); err != nil || !strings.Contains(text, "lunar_") {
		t.Errorf("found %q, %v, expected metrics", text, err)
	}
	l.sense(c, 0, 0, 0)
	dial(t, l.portal, initiator.Options{Target: "iqn.2026-11.test:u", ISID: [6]byte{0x80, 9}})
	for end := time.Now().Add(time.Minute); !strings.Contains(l.log.String(), `"msg":"session opened"`); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("found no line of JSON in\n%s", l.log)
		}
	}
	for _, refused := range []struct{ with, want string }{
		{server("congestion: no-such, metrics: '" + second + "'"), `"no-such"`},
		{server("congestion: cubic, metrics: '192.0.2.77:1'"), "192.0.2.77:1"},
	} {
		l.apply(exitFailure, []string{keys, refused.with}, refused.want, "was not applied, and nothing was changed")
		if _, err := metricsAt(first); err != nil {
			t.Errorf("found %v, expected the metrics where they were", err)
		}
	}
	l.apply(exitOK, []string{keys, server("poll: adaptive, batching: {static: 4}, metrics: '" + second + "'")}, "server.metrics: "+second, "server.batching: {static: 4}")
	if _, err := metricsAt(first); err == nil {
		t.Error("found metrics where they were, expected them elsewhere")
	}
	if _, err := metricsAt(second); err != nil {
		t.Error(err)
	}
	l.sense(c, 0, 0, 0)
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
