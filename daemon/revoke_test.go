package daemon

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"lunar/internal/cli"
	"lunar/internal/initiator"
)

// TestApplyRevokes: an apply that would admit a session no more names it, and asks it to
// leave when that is allowed. A rotated secret alone leaves it alone.
func TestApplyRevokes(t *testing.T) {
	l := serveLive(t, liveConfig)
	target, secret := "iqn.2026-11.test:t", chap("the first secret")
	c := dial(t, l.portal, initiator.Options{Target: target, CHAP: secret})
	settle(t, c, 0)
	l.has(l.tgtd(cli.ExitOK, "sessions", "--json"), `"user":"hosts/u"`)
	l.apply(cli.ExitOK, []string{"the first secret", "the rotated secret"}, "auth-groups.hosts.chap: changed")
	l.sense(c, 0, 0, 0)
	renamed := []string{"user: u", "user: w", "{0: file}", "{0: file, 1: ram}"}
	l.apply(cli.ExitDestructive, renamed, `does not admit iqn.2026-01.lunar:initiator any more as user "u" of auth-group hosts`, "of iqn.2026-01.lunar:initiator from 127.0.0.1", "--yes")
	l.sense(c, 0, 0, 0)
	l.allow = []string{"--yes"}
	l.apply(cli.ExitOK, renamed, "sessions asked to log out: 1")
	l.asked(c)
	l.sense(c, 1, 0x25, 0)
	if _, err := initiator.Dial(t.Context(), l.portal, initiator.Options{Target: target, CHAP: chap("the rotated secret")}); err == nil {
		t.Error("the user who was renamed logs in")
	}
	w := dial(t, l.portal, initiator.Options{Target: target, CHAP: &initiator.CHAP{User: "w", Secret: []byte("the rotated secret")}, ISID: [6]byte{0x80, 1}})
	settle(t, w, 1)
	l.apply(cli.ExitOK, []string{`"the rotated secret"}`, `"the rotated secret", initiators: ["iqn.2026-01.lunar:other"]}`}, "sessions asked to log out: 1")
	l.asked(w)
}

// TestReservationsOutliveUsers: saved registrations are of initiator names. They are those
// of a user who has been renamed and has another secret, and of nobody else who claims the
// name that is that user's.
func TestReservationsOutliveUsers(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "tgtd.yaml")
	const text = `
server: {threads: 1, buffers-per-thread: 8MiB}
portal-groups: {a: {listen: ["127.0.0.1:0"]}}
auth-groups:
  hosts:
    chap:
      - {user: u, secret: "the first secret", initiators: ["iqn.2026-01.lunar:initiator"]}
      - {user: v, secret: "the other secret"}
volumes: {v: {type: ram, size: 1MiB}}
targets: {"iqn.2026-11.test:t": {luns: {0: v}, auth-group: hosts}}
`
	login := func(user, secret string) initiator.Options {
		return initiator.Options{Target: "iqn.2026-11.test:t", CHAP: &initiator.CHAP{User: user, Secret: []byte(secret)}}
	}
	writeFile(t, config, text)
	s := serveChild(t, "-c", config, "--state-dir", dir)
	r := &registrant{Conn: dial(t, s.portal, login("u", "the first secret"))}
	settle(t, r.Conn, 0)
	if err := r.register(7); err != nil {
		t.Fatal(err)
	}
	s.end(t, syscall.SIGKILL)
	writeFile(t, config, strings.NewReplacer("user: u", "user: w", "the first secret", "a rotated secret").Replace(text))
	s = serveChild(t, "-c", config, "--state-dir", dir)
	var f *initiator.LoginFailure
	if _, err := initiator.Dial(t.Context(), s.portal, login("v", "the other secret")); !errors.As(err, &f) || f.Class != 2 || f.Detail != 2 {
		t.Errorf("another user: %v, expected status 0202", err)
	}
	r.Conn = dial(t, s.portal, login("w", "a rotated secret"))
	settle(t, r.Conn, 0)
	if err := r.register(8); err != nil {
		t.Fatal(err)
	}
	if found := r.keys(t); len(found) != 1 || found[0] != 8 {
		t.Errorf("keys %d, expected that the registration of before has key 8", found)
	}
	s.end(t, syscall.SIGTERM)
}
