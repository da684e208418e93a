package daemon

import (
	"strings"
	"testing"

	"lunar/internal/cli"
	"lunar/internal/initiator"
)

// TestReservationsCommand: an administrator sees who has registered and reserved,
// and clears it, but not by accident.
func TestReservationsCommand(t *testing.T) {
	s, dir := aluaServer(t)
	c := dial(t, s.portal, initiator.Options{Target: "iqn.2026-11.test:t"})
	settle(t, c, 0)
	list := make([]byte, 24)
	list[15] = 0xab
	for action := range byte(2) { // REGISTER, RESERVE write exclusive
		r, err := c.Command([]byte{0x5f, action, action, 0, 0, 0, 0, 0, 24, 0}, 0, list, 0)
		if err != nil || r.Status != 0 {
			t.Fatalf("%+v, %v", r, err)
		}
		list[7], list[15] = 0xab, 0
	}
	tgtd := func(status int, want string, args ...string) {
		t.Helper()
		var out, messages strings.Builder
		if got := run(t.Context(), append(append([]string{"reservations"}, args...), "--state-dir", dir), cli.Console{Out: &out, Err: &messages}); got != status {
			t.Errorf("tgtd %q: status %d, expected %d", args, got, status)
		}
		if text := strings.Join(strings.Fields(out.String()+messages.String()), " "); !strings.Contains(text, want) {
			t.Errorf("tgtd %q: found %q, expected %q", args, text, want)
		}
	}
	tgtd(cli.ExitOK, "a write-exclusive 0x00000000000000ab", "show")
	tgtd(cli.ExitOK, "1 yes", "show", "a")
	tgtd(cli.ExitOK, "b none - - - -", "show", "b")
	tgtd(cli.ExitOK, `"type":"write-exclusive"`, "show", "--json")
	tgtd(cli.ExitFailure, `no volume "c"`, "show", "c")
	tgtd(cli.ExitDestructive, "give --yes", "clear", "a")
	tgtd(cli.ExitOK, "a write-exclusive", "show", "a")
	tgtd(cli.ExitFailure, `no volume "c"`, "clear", "c", "--yes")
	tgtd(cli.ExitOK, "There was: VOLUME TYPE KEY INITIATOR GROUP HOLDS a write-exclusive", "clear", "a", "--yes")
	tgtd(cli.ExitOK, "a none", "show", "a")
}
