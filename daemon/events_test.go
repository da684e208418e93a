package daemon

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"lunar/control"
	"lunar/internal/cli"
	"lunar/internal/initiator"
)

// TestEvents: logins, refusals and changes are told, with the fields that the log has,
// though the log has errors alone; and no secret.
func TestEvents(t *testing.T) {
	l := serveLive(t, liveConfig+"log: {level: error}\n")
	c := dial(t, l.portal, initiator.Options{Target: "iqn.2026-11.test:t", CHAP: chap("the first secret")})
	c.Close()
	if c, err := initiator.Dial(t.Context(), l.portal, initiator.Options{Target: "iqn.2026-11.test:t", CHAP: chap("the wrong secret")}); err == nil {
		c.Close()
		t.Fatal("a wrong secret is taken")
	}
	l.tgtd(cli.ExitOK, "drain", "a")
	text := l.tgtd(cli.ExitOK, "events")
	l.has(text, "login: session opened", `initiator="iqn.`, "login-refused: CHAP failed", "login-refused: login failed", `reason="`, "change: change", `what="POST /v1/drain`, "server: ready")
	if strings.Contains(text, "secret") && strings.Contains(text, "the first") {
		t.Errorf("a secret is told in %s", text)
	}
	only := l.tgtd(cli.ExitOK, "events", "--kind", "change", "--json")
	if strings.Contains(only, `"kind":"login"`) || !strings.Contains(only, `"kind":"change"`) {
		t.Errorf("found %s", only)
	}
	api, err := control.Dial(filepath.Join(l.dir, control.SocketName))
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	if ready, err := api.Raw(t.Context(), "/readyz"); err == nil || !strings.Contains(err.Error(), http.StatusText(http.StatusServiceUnavailable)) {
		t.Errorf("drained: found %q, %v", ready, err)
	}
	if alive, err := api.Raw(t.Context(), "/healthz"); err != nil || string(alive) != "ok\n" {
		t.Errorf("found %q, %v", alive, err)
	}
}
