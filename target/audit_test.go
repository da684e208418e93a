package target_test

import (
	"encoding/binary"
	"log/slog"
	"strings"
	"testing"
	"time"

	"lunar/internal/eventually"
	"lunar/internal/initiator"
	"lunar/target"
)

// TestLogOfAFlood: who logs in again and again, or fails to, makes the log grow by few
// lines, is counted, and hides nobody else.
func TestLogOfAFlood(t *testing.T) {
	log := new(lines)
	r := newRig(t, rigOptions{config: target.Config{Logger: slog.New(slog.NewTextHandler(log, nil))}})
	const rounds = 150
	begin := time.Now()
	for n := range rounds {
		wrong := nth(n)
		wrong.Target = "iqn.2026-11.test:nowhere"
		if _, err := r.loginFrom(stranger, wrong); err == nil {
			t.Fatal("logged in to a target that is not there")
		}
		c, err := r.loginFrom(stranger, nth(n))
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	if _, err := r.loginFrom(host, nth(1)); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the sessions have ended", func() bool { return r.server.Holding().Sessions == 1 })
	most := 50 + int(time.Since(begin)/time.Second) + 1
	if n := strings.Count(log.String(), "address="+stranger); n > most || n < 50 {
		t.Errorf("%d lines for %d failed logins and as many sessions, expected 50 and one a second, %d", n, rounds, most)
	}
	if n := strings.Count(log.String(), "address="+host); n == 0 {
		t.Error("the login of another address is not in the log")
	}
	r.stop()
	if !strings.Contains(log.String(), `"lines of one address were held back" address=`+stranger+" more=") {
		t.Errorf("the log does not tell how much is missing:\n%s", log)
	}
}

// TestTakingFromOthersIsLogged: who takes something from others is in the log, by name and address.
func TestTakingFromOthersIsLogged(t *testing.T) {
	log := new(lines)
	r := newRig(t, rigOptions{config: target.Config{Logger: slog.New(slog.NewTextHandler(log, nil))}})
	c, err := r.loginFrom(host, nth(7))
	if err != nil {
		t.Fatal(err)
	}
	testUnitReady(t, c, 0)
	out := func(action byte, key, serviceKey uint64) {
		t.Helper()
		list := binary.BigEndian.AppendUint64(nil, key)
		list = append(binary.BigEndian.AppendUint64(list, serviceKey), make([]byte, 8)...)
		cdb := []byte{0x5f, action, 0, 0, 0, 0, 0, 0, byte(len(list)), 0}
		res, err := c.Do(initiator.Command{CDB: cdb, Out: list})
		mustGood(t, res, err)
	}
	out(0, 0, 1) // REGISTER
	out(3, 1, 0) // CLEAR
	if _, err := c.TaskManagement(initiator.TaskRequest{Function: initiator.LogicalUnitReset}); err != nil {
		t.Fatal(err)
	}
	again, err := r.loginFrom(host, nth(7)) // which replaces the session
	if err != nil {
		t.Fatal(err)
	}
	if n := r.server.Kick(func(target.SessionStats) bool { return true }); n != 1 {
		t.Fatalf("%d sessions are to end", n)
	}
	again.Close()
	r.stop()
	for _, want := range []string{
		`msg="session opened"`, `msg="persistent reservation"`, "action=CLEAR", `function="LOGICAL UNIT RESET"`,
		`reason="the initiator logged in again"`, `msg="initiator asked to log out"`,
	} {
		found := false
		for line := range strings.Lines(log.String()) {
			found = found || strings.Contains(line, want) && strings.Contains(line, "initiator="+nth(7).Initiator) && strings.Contains(line, "address="+host)
		}
		if !found {
			t.Errorf("found no line with %s in\n%s", want, log)
		}
	}
}
