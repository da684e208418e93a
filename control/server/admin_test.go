package server

import (
	"strings"
	"testing"

	"lunar/control"
)

// TestAdmin: what an administrator asks for reaches the source, and its answer
// the administrator.
func TestAdmin(t *testing.T) {
	c, _ := shelved(t, &shelf{})
	if text, err := c.Running(t.Context()); err != nil || text != "log: {level: info}" {
		t.Errorf("running: %q, %v", text, err)
	}
	if n, err := c.Kick(t.Context(), control.Kick{Initiator: "iqn.x"}); err != nil || n != 5 {
		t.Errorf("kick: %d, %v", n, err)
	}
	if d, err := c.Drain(t.Context(), control.Drain{Portal: "lan", To: "there:1"}); err != nil || d.Sessions != 1 || d.Draining[0] != "lan there:1" {
		t.Errorf("drain: %+v, %v", d, err)
	}
	if _, err := c.Drain(t.Context(), control.Drain{Portal: "lan", Off: true}); err == nil || !strings.Contains(err.Error(), "nothing is drained") {
		t.Errorf("drain: %v, expected what the source says", err)
	}
	if r, err := c.Resync(t.Context(), "disk"); err != nil || r.Member != "b of disk" || r.Regions != 3 {
		t.Errorf("resync: %+v, %v", r, err)
	}
	if r, err := c.Rescan(t.Context(), "disk"); err != nil || r.Before != 1 || r.Now != 4 {
		t.Errorf("rescan: %+v, %v", r, err)
	}
	if d, err := c.Detach(t.Context(), "disk", control.Detach{Discard: true}); err != nil || d.Store != "disk" || d.Lost != 7 {
		t.Errorf("detach: %+v, %v", d, err)
	}
	if _, err := c.Detach(t.Context(), "disk", control.Detach{}); err == nil || !strings.Contains(err.Error(), "is configured") {
		t.Errorf("detach: %v, expected what the source says", err)
	}
	if _, err := c.Rescan(t.Context(), "no name"); err == nil {
		t.Error("a name was accepted that no volume can have")
	}
}
