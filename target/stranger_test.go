package target_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"lunar/internal/eventually"
	"lunar/internal/initiator"
	"lunar/internal/refusals"
	"lunar/target"
	"lunar/target/login"
	"lunar/target/scsi"
)

// loginSteps sends login requests of the security stage, each with a text, until one is
// refused, and returns what came back: status, window, and the keys without values that
// are random.
func loginSteps(t *testing.T, addr string, tsih uint16, isid byte, texts ...string) (answers []string) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	for _, text := range texts {
		request := append(loginPDU(text), make([]byte, (4-len(text)%4)%4)...)
		request[1], request[13] = 0, isid
		binary.BigEndian.PutUint16(request[14:], tsih)
		binary.BigEndian.PutUint32(request[24:], 1000) // CmdSN
		if _, err := c.Write(request); err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, 48)
		if _, err := io.ReadFull(c, answer); err != nil {
			t.Fatal(err)
		}
		body := make([]byte, (int(answer[6])<<8|int(answer[7])+3)&^3)
		if _, err := io.ReadFull(c, body); err != nil {
			t.Fatal(err)
		}
		answers = append(answers, fmt.Sprintf("%x window %x %s", answer[36:38], answer[28:36], steady(string(body))))
		if answer[36] != 0 {
			return answers
		}
	}
	return answers
}

// steady leaves the values that are random out of a text.
func steady(text string) (keys []string) {
	for _, pair := range strings.Split(strings.TrimRight(text, "\x00"), "\x00") {
		if key, _, _ := strings.Cut(pair, "="); key == "CHAP_I" || key == "CHAP_C" {
			pair = key
		}
		keys = append(keys, pair)
	}
	return keys
}

// TestHiddenTargetsAnswerAlike: a stranger cannot tell a target that is not there from
// one that is for others, or that is in another portal group, nor from one whose secret
// it does not know.
func TestHiddenTargetsAnswerAlike(t *testing.T) {
	for _, chap := range []bool{false, true} {
		t.Run(fmt.Sprintf("CHAP %v", chap), func(t *testing.T) {
			auth := anyone
			if chap {
				auth = group("tenants", "alice")
				auth.Algorithms = []login.Algorithm{login.SHA256, login.MD5}
			}
			r := newRig(t, rigOptions{rules: func([]*scsi.LogicalUnit) []target.AccessRule { return []target.AccessRule{{Auth: auth}} }})
			for _, hidden := range []target.TargetConfig{
				{Name: "iqn.2026-11.lunar:others", PortalGroups: []uint16{1}, Access: []target.AccessRule{{Initiators: []string{"iqn.2026-01.friend:x"}, Auth: auth}}},
				{Name: "iqn.2026-11.lunar:elsewhere", Alias: "secret", PortalGroups: []uint16{2}, Access: []target.AccessRule{{Auth: auth}}},
			} {
				if _, err := r.server.AddTarget(hidden); err != nil {
					t.Fatal(err)
				}
			}
			names := []string{"iqn.2026-11.lunar:absent", "iqn.2026-11.lunar:others", "iqn.2026-11.lunar:elsewhere"}
			if chap {
				names = append(names, testTarget)
			}
			for _, method := range []string{"None", "CHAP,None"} {
				var first []string
				for _, name := range names {
					got := loginSteps(t, r.addr, 0, 9, "InitiatorName=iqn.2026-01.lunar:evil\x00TargetName="+name+"\x00AuthMethod="+method+"\x00",
						"CHAP_A=5,6,7,8\x00", "CHAP_N=alice\x00CHAP_R=0x"+strings.Repeat("5a", 32)+"\x00")
					if first == nil {
						first = got
					}
					if !slices.Equal(got, first) {
						t.Errorf("AuthMethod=%s: %s answers\n%q, %s\n%q", method, name, got, names[0], first)
					}
				}
			}
		})
	}
}

// TestGuessesTellNoTargets: how long a wrong proof waits, after others at the same user
// from elsewhere, does not tell a target that is there from one that is not.
func TestGuessesTellNoTargets(t *testing.T) {
	auth := group("tenants", "alice")
	if nobody := auth.Nobody(); nobody.Group != auth.Group || nobody.Has(login.Proof{Group: auth.Group, User: "alice"}) {
		t.Errorf("found %+v, expected guesses to count in group %q", nobody, auth.Group)
	}
}

// TestMasksAreKept: a login for a target that is not there does not look through all
// targets, which would take so long that it told, but through none that has changed.
func TestMasksAreKept(t *testing.T) {
	r := newRig(t, rigOptions{rules: func([]*scsi.LogicalUnit) []target.AccessRule {
		return []target.AccessRule{{Auth: group("tenants", "alice")}}
	}})
	first, again := r.server.Masks(), r.server.Masks()
	if len(first) != 1 || &first[0] != &again[0] {
		t.Errorf("found %d masks, made anew, expected the one", len(first))
	}
	r.change(target.TargetConfig{Access: []target.AccessRule{{Auth: group("others", "bob")}, {Auth: group("tenants", "alice")}}})
	if now := r.server.Masks(); len(now) != 2 || now[0].Group != "others" {
		t.Errorf("found %d masks, expected those of the changed target", len(now))
	}
}

// TestClosedPortalTellsNoTargets: a portal that serves nobody now answers for targets
// that are there, and those that are not, alike.
func TestClosedPortalTellsNoTargets(t *testing.T) {
	for name, auth := range map[string]login.Auth{"CHAP": group("tenants", "alice"), "no CHAP": anyone} {
		for _, to := range []string{"", "192.0.2.1:3260"} {
			t.Run(name+" "+to, func(t *testing.T) {
				r := newRig(t, rigOptions{rules: func([]*scsi.LogicalUnit) []target.AccessRule { return []target.AccessRule{{Auth: auth}} }})
				r.server.Drain(target.Drain{Tag: 1, Redirect: to})
				var answers [2][]string
				for i, name := range []string{testTarget, "iqn.2026-11.lunar:absent"} {
					answers[i] = loginSteps(t, r.addr, 0, 9, "InitiatorName=iqn.2026-01.lunar:evil\x00TargetName="+name+"\x00AuthMethod=CHAP,None\x00")
				}
				if there, absent := answers[0], answers[1]; !slices.Equal(there, absent) {
					t.Errorf("there\n%q, absent\n%q", there, absent)
				}
			})
		}
	}
}

// TestWindowIsTheSessionsOwn: TSIH and ISID of somebody's session tell nothing of it.
func TestWindowIsTheSessionsOwn(t *testing.T) {
	r := newRig(t, rigOptions{
		config: target.Config{Limits: target.Limits{MaxConnections: 2}},
		rules: func(lus []*scsi.LogicalUnit) []target.AccessRule {
			return []target.AccessRule{{Auth: group("tenants", "alice"), LUNs: []target.LUNMapping{{LU: lus[0]}}}}
		}})
	victim := r.login(as("alice", initiator.Options{ISID: [6]byte{0x80, 0, 0, 0, 0, 9}, Keys: initiator.Keys{{Name: "MaxConnections", Value: "2"}}}))
	mustGood(t, ready(t, victim), nil)
	ask := func(tsih uint16) []string {
		return loginSteps(t, r.addr, tsih, 9, "InitiatorName="+initiator.DefaultInitiator+"\x00TargetName="+testTarget+"\x00AuthMethod=CHAP\x00", "CHAP_A=7\x00", "CHAP_N=alice\x00CHAP_R=0x5a\x00")
	}
	if hers, none := ask(victim.TSIH), ask(victim.TSIH+1); !slices.Equal(hers, none) {
		t.Errorf("of her session\n%q, of none\n%q", hers, none)
	}
}

// TestGuessesWait: wrong proofs of an address, and those of a user from wherever, wait
// longer and longer, and nobody else does.
func TestGuessesWait(t *testing.T) {
	r := newRig(t, rigOptions{})
	at, now := netip.MustParseAddr, time.Now()
	wait := func(from string, user string) time.Duration {
		return r.server.Guessed(at(from), login.Proof{Group: "g", User: user}, now)
	}
	for i := range 20 {
		if got, want := wait("192.0.2.1", fmt.Sprint("user", i)), time.Duration(i+1)*250*time.Millisecond; got != want {
			t.Errorf("guess %d of an address waits %v, expected %v", i, got, want)
		}
		if got, want := wait(fmt.Sprintf("198.51.100.%d", i), "alice"), time.Duration(i+1)*250*time.Millisecond; got != want {
			t.Errorf("guess %d at a user waits %v, expected %v", i, got, want)
		}
	}
	if got := wait("203.0.113.1", "bob"); got != 250*time.Millisecond {
		t.Errorf("somebody else waits %v", got)
	}
	now = now.Add(time.Minute)
	if got := wait("192.0.2.1", "alice"); got != 250*time.Millisecond {
		t.Errorf("after a minute it waits %v", got)
	}
}

// TestAnswerToGuessIsHeldBack: a wrong proof has been counted and logged, and is not
// answered when the server ends, while who is right is let in.
func TestAnswerToGuessIsHeldBack(t *testing.T) {
	logged, counters, answered := &eventually.Output{}, &refusals.Counters{}, make(chan error, 1)
	t.Cleanup(func() { // after the server's end
		var f *initiator.LoginFailure
		if err := <-answered; err == nil || errors.As(err, &f) {
			t.Errorf("the guess was answered: %v", err)
		}
	})
	r := newRig(t, rigOptions{
		config: target.Config{Refusals: counters, Logger: slog.New(slog.NewTextHandler(logged, nil)), Limits: target.Limits{LoginTimeout: time.Hour}},
		rules: func(lus []*scsi.LogicalUnit) []target.AccessRule {
			return []target.AccessRule{{Auth: group("tenants", "alice", "bob"), LUNs: []target.LUNMapping{{LU: lus[0]}}}}
		}})
	for range 100 {
		r.server.Guessed(netip.MustParseAddr("127.0.0.1"), login.Proof{Group: "tenants", User: "alice"}, time.Now())
	}
	guess := as("alice", initiator.Options{Target: testTarget})
	guess.CHAP.Secret = []byte("not the secret")
	go func() {
		_, err := initiator.Dial(context.Background(), r.addr, guess)
		answered <- err
	}()
	eventually.Holds(t, "the guess is logged", func() bool { return logged.Count("CHAP failed") > 0 })
	if counters.Of(refusals.CHAPWrong) != 1 || logged.Count("user=tenants/alice") != 1 || logged.Count("not the secret") > 0 {
		t.Errorf("%d are counted; logged %s", counters.Of(refusals.CHAPWrong), logged)
	}
	if _, err := r.login(as("bob", initiator.Options{})).Logout(0); err != nil {
		t.Error(err)
	}
}

// TestOpenDiscoveryTellsTheWayThatItCame: who has proven nothing learns of what it may
// reach through the portal group that it came by, and of no address of another.
func TestOpenDiscoveryTellsTheWayThatItCame(t *testing.T) {
	chap := group("finders", "alice")
	chap.AllowNone = true // who wants may prove itself
	for _, c := range []struct {
		name      string
		all       bool
		user      string
		targets   int
		addresses int
	}{
		{"nothing proven", false, "", 1, 1},
		{"as configured", true, "", 2, 2},
		{"proven", false, "alice", 2, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, rigOptions{config: target.Config{DiscoveryAuth: chap, DiscoverAll: c.all}})
			r.change(target.TargetConfig{PortalGroups: []uint16{1, 2}, Access: []target.AccessRule{{Auth: anyone}}})
			if _, err := r.server.AddTarget(target.TargetConfig{Name: "iqn.2026-11.lunar:elsewhere", PortalGroups: []uint16{2}, Access: []target.AccessRule{{Auth: anyone}}}); err != nil {
				t.Fatal(err)
			}
			if err := r.server.Listen(target.PortalGroup{Tag: 2, Portals: portals(t, r.server, "127.0.0.1:0")}); err != nil {
				t.Fatal(err)
			}
			found, err := r.dial(as(c.user, initiator.Options{})).SendTargets("All")
			if err != nil || len(found) != c.targets || len(found[0].Addresses) != c.addresses {
				t.Errorf("found %v, %v, expected %d targets, the first with %d addresses", found, err, c.targets, c.addresses)
			}
		})
	}
}

// TestNamesOfStrangers: what is no iSCSI name is refused, and nothing of what strangers
// call themselves changes how a log reads.
func TestNamesOfStrangers(t *testing.T) {
	logged := &eventually.Output{}
	r := newRig(t, rigOptions{config: target.Config{Logger: slog.New(slog.NewJSONHandler(logged, &slog.HandlerOptions{Level: slog.LevelDebug}))}})
	const evil = "\u202eevil\u2066"
	for _, name := range []string{"host", "iqn.2026-01.x:" + evil, "iqn.2026-01.x:a b", "eui.12", "iqn.2026-01.x:\u05d0"} {
		if f := r.refused(initiator.Options{Initiator: name}); f.Class != 2 || f.Detail != 0 {
			t.Errorf("%q: status %02x%02x, expected 0200", name, f.Class, f.Detail)
		}
	}
	for _, method := range []string{"None", evil} {
		loginSteps(t, r.addr, 0, 9, "InitiatorName=iqn.2026-01.x:a\x00TargetName="+evil+"\x00AuthMethod="+method+"\x00")
	}
	c := r.login(initiator.Options{Initiator: "IQN.2026-01.X:Upper", Keys: initiator.Keys{{Name: "InitiatorAlias", Value: evil}}})
	mustGood(t, ready(t, c), nil)
	if n := logged.Count("\u202e") + logged.Count("\u2066"); n > 0 {
		t.Errorf("%d characters that change the direction of text are logged: %s", n, logged)
	}
	for _, n := range r.server.Sessions() {
		if n.Initiator != "iqn.2026-01.x:upper" || n.Alias != "\ufffdevil\ufffd" {
			t.Errorf("a session of %q, alias %q", n.Initiator, n.Alias)
		}
	}
}
