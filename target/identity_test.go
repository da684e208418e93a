package target_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"lunar/internal/initiator"
	"lunar/internal/refusals"
	"lunar/scheduler"
	"lunar/target"
	"lunar/target/login"
	"lunar/target/pdu"
	"lunar/target/scsi"
)

// secretOf is the CHAP secret of a user in these tests.
func secretOf(user string) string { return user + "'s CHAP secret" }

// group is an auth group of users.
func group(name string, users ...string) login.Auth {
	a := login.Auth{Group: name}
	for _, u := range users {
		a.Incoming = append(a.Incoming, login.Credential{User: u, Secret: login.NewSecret(secretOf(u))})
	}
	return a
}

// as are the options of a login that a user proves; no user proves nothing.
func as(user string, o initiator.Options) initiator.Options {
	if user != "" {
		o.CHAP = &initiator.CHAP{User: user, Secret: []byte(secretOf(user))}
	}
	return o
}

// expose adds a target for who proves to be of a group, or for all.
func (r *rig) expose(name string, auth login.Auth, lus ...*scsi.LogicalUnit) {
	r.t.Helper()
	var luns []target.LUNMapping
	for i, lu := range lus {
		luns = append(luns, target.LUNMapping{LUN: uint16(i), LU: lu})
	}
	if _, err := r.server.AddTarget(target.TargetConfig{Name: name, PortalGroups: []uint16{1}, Access: []target.AccessRule{{Auth: auth, LUNs: luns}}}); err != nil {
		r.t.Fatal(err)
	}
}

var anyone = login.Auth{AllowNone: true}

// strangers are logins with the name of alice of the group tenants, to a target of
// their own: none of them may reach what she has.
var strangers = []struct {
	name string
	auth login.Auth
	user string
}{
	{"nothing proven", anyone, ""},
	{"another user", group("tenants", "bob"), "bob"},
	{"a user of the same name in another group", group("others", "alice"), "alice"},
}

// TestCopyReachesWhatIsProven: EXTENDED COPY and WRITE USING TOKEN reach the logical
// units of the same user's sessions, and nothing of who merely has the same name.
func TestCopyReachesWhatIsProven(t *testing.T) {
	const own = "iqn.2026-11.lunar:own"
	r := newRig(t, rigOptions{rules: func(lus []*scsi.LogicalUnit) []target.AccessRule {
		return []target.AccessRule{{Auth: group("tenants", "alice"), LUNs: []target.LUNMapping{{LU: lus[0]}}}}
	}})
	victim := r.login(as("alice", initiator.Options{}))
	secret := pattern(4096, 3)
	res, err := victim.Command(cdbWrite16(0, 8), 0, secret, 0)
	mustGood(t, res, err)
	token := populateToken(t, victim, 8)
	for i, s := range strangers {
		t.Run(s.name, func(t *testing.T) {
			name := own + string(rune('0'+i))
			r.expose(name, s.auth, r.unit(name, nil))
			c := r.login(as(s.user, initiator.Options{Target: name, ISID: [6]byte{0x80, 1}}))
			hers, mine := naaCSCD(t, victim, 0), naaCSCD(t, c, 0)
			for what, res := range map[string]*initiator.Result{
				"read": extendedCopy(t, c, hers, mine, 8), "write": extendedCopy(t, c, mine, hers, 8), "token": writeUsingToken(t, c, token, 8),
			} {
				if res.Status == 0 {
					t.Errorf("%s: GOOD", what)
				}
			}
			res, err := c.Command(cdbRead16(0, 8), 0, nil, 4096)
			if got := mustGood(t, res, err).In; !bytes.Equal(got, make([]byte, 4096)) {
				t.Error("her data were copied")
			}
		})
	}
	res, err = victim.Command(cdbRead16(0, 8), 0, nil, 4096)
	if got := mustGood(t, res, err).In; !bytes.Equal(got, secret) {
		t.Error("her data were overwritten")
	}
	r.expose(own, group("tenants", "alice"), r.unit(own, nil))
	c := r.login(as("alice", initiator.Options{Target: own, ISID: [6]byte{0x80, 2}}))
	mustGood(t, writeUsingToken(t, c, token, 8), nil)
	mustGood(t, extendedCopy(t, c, naaCSCD(t, victim, 0), naaCSCD(t, c, 0), 8), nil)
}

// populateToken makes a token of blocks from the start of LUN 0.
func populateToken(t *testing.T, c *initiator.Conn, blocks uint32) []byte {
	t.Helper()
	list := make([]byte, 32)
	list[1], list[15] = 30, 16
	binary.BigEndian.PutUint32(list[24:], blocks)
	res, err := c.Command([]byte{0x83, 0x10, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 32, 0, 0}, 0, list, 0)
	mustGood(t, res, err)
	res, err = c.Command([]byte{0x84, 0x07, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0}, 0, nil, 1024)
	return mustGood(t, res, err).In[38:550]
}

// writeUsingToken writes what a token stands for to the start of LUN 0.
func writeUsingToken(t *testing.T, c *initiator.Conn, token []byte, blocks uint32) *initiator.Result {
	t.Helper()
	list := make([]byte, 552)
	binary.BigEndian.PutUint16(list, 550)
	copy(list[16:], token)
	list[535] = 16
	binary.BigEndian.PutUint32(list[544:], blocks)
	res, err := c.Command([]byte{0x83, 0x11, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 2, 0x28, 0, 0}, 0, list, 0)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// TestSessionBelongsToItsUser: a session is reinstated, and joined, by logins of the
// user that has begun it. Another one of the same name is refused.
func TestSessionBelongsToItsUser(t *testing.T) {
	counted := new(refusals.Counters)
	r := newRig(t, rigOptions{
		config: target.Config{Limits: target.Limits{MaxConnections: 2}, Refusals: counted},
		rules: func(lus []*scsi.LogicalUnit) []target.AccessRule {
			return []target.AccessRule{{Auth: group("tenants", "alice", "bob"), LUNs: []target.LUNMapping{{LU: lus[0]}}}}
		}})
	shared := initiator.Options{Keys: initiator.Keys{{Name: "MaxConnections", Value: "2"}}}
	victim := r.login(as("alice", shared))
	if f := r.refused(as("bob", shared)); f.Class != 2 || f.Detail != 2 {
		t.Errorf("reinstatement by another user: status %02x%02x, expected 0202", f.Class, f.Detail)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var f *initiator.LoginFailure
	if _, err := victim.Join(ctx, r.addr, as("bob", initiator.Options{Target: testTarget, CID: 1})); !errors.As(err, &f) || f.Class != 2 || f.Detail != 0x0a {
		t.Errorf("another user joins: %v, expected status 020a", err)
	}
	if n := counted.Of(refusals.LoginPort); n != 1 {
		t.Errorf("%d refusals are counted, expected 1", n)
	}
	mustGood(t, ready(t, victim), nil)
	second, err := victim.Join(ctx, r.addr, as("alice", initiator.Options{Target: testTarget, CID: 1}))
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	again := r.login(as("alice", shared))
	if _, err := victim.Receive(patience); !errors.Is(err, initiator.ErrClosed) {
		t.Errorf("%v, expected that her own login replaces the session", err)
	}
	r.change(target.TargetConfig{Access: []target.AccessRule{{Auth: group("tenants", "alicia"), LUNs: []target.LUNMapping{{LU: r.lu}}}}})
	r.login(as("alicia", shared))
	err = nil
	for err == nil { // it is asked to leave, too
		_, err = again.Receive(patience)
	}
	if !errors.Is(err, initiator.ErrClosed) {
		t.Errorf("%v, expected that a login replaces a session that would not be admitted any more", err)
	}
}

// ready is TEST UNIT READY.
func ready(t *testing.T, c *initiator.Conn) *initiator.Result {
	t.Helper()
	res, err := c.Command(make([]byte, 6), 0, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// TestNamesOfUsers: a name that a user has is nobody else's, and the user has no other.
func TestNamesOfUsers(t *testing.T) {
	const alices, bobs, free = "iqn.2026-01.lunar:alice", "iqn.2026-01.lunar:bob:1", "iqn.2026-01.lunar:free"
	owners := target.NewOwners([]target.Owner{
		{Proof: login.Proof{Group: "tenants", User: "alice"}, Names: []string{strings.ToUpper(alices)}},
		{Proof: login.Proof{Group: "others", User: "alice"}, Names: []string{alices}},
		{Proof: login.Proof{Group: "tenants", User: "bob"}, Names: []string{"iqn.2026-01.lunar:bob:*"}},
	})
	counted := new(refusals.Counters)
	r := newRig(t, rigOptions{config: target.Config{Refusals: counted, Owners: owners, DiscoveryAuth: group("tenants", "alice", "carol")}})
	r.expose("iqn.2026-11.lunar:tenants", group("tenants", "alice", "bob", "carol"), r.lu)
	r.expose("iqn.2026-11.lunar:others", group("others", "alice"), r.lu)
	for _, c := range []struct {
		target, user, name string
		status             int // class and detail; 0: it is let in
	}{
		{"tenants", "alice", alices, 0},
		{"tenants", "alice", strings.ToUpper(alices[:4]) + alices[4:], 0},
		{"others", "alice", alices, 0},
		{"tenants", "bob", bobs, 0},
		{"tenants", "carol", free, 0},
		{"tenants", "bob", alices, 0x0202},
		{"tenants", "carol", alices, 0x0202},
		{"tenants", "carol", bobs, 0x0202},
		{"tenants", "alice", free, 0x0202},
		{"tenants", "alice", bobs, 0x0202},
		{"test", "", free, 0},
		{"test", "", alices, 0x0201},
		{"", "alice", alices, 0},
		{"", "alice", free, 0x0202},
		{"", "carol", alices, 0}, // it is told of no more than the name may use
	} {
		o := as(c.user, initiator.Options{Initiator: c.name})
		if c.target != "" {
			o.Target = "iqn.2026-11.lunar:" + c.target
		}
		if got := r.statusOf(o); got != c.status {
			t.Errorf("%s as %q to %q: status %04x, expected %04x", c.name, c.user, c.target, got, c.status)
		}
	}
	if n := counted.Of(refusals.LoginName); n != 7 {
		t.Errorf("%d refusals are counted, expected 7", n)
	}
}

// statusOf is the status of a login, as its class and detail; 0: it is let in.
func (r *rig) statusOf(o initiator.Options) int {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := initiator.Dial(ctx, r.addr, o)
	var f *initiator.LoginFailure
	switch {
	case errors.As(err, &f):
		return int(f.Class)<<8 | int(f.Detail)
	case err != nil:
		r.t.Fatal(err)
	}
	conn.Close()
	return 0
}

// TestRegistrationBelongsToItsUser: who has registered is not succeeded by another user
// with the same name and ISID, unless the first one cannot come any more, or the name is
// the other's.
func TestRegistrationBelongsToItsUser(t *testing.T) {
	r := newRig(t, rigOptions{rules: func(lus []*scsi.LogicalUnit) []target.AccessRule {
		return []target.AccessRule{{Auth: group("tenants", "alice", "bob"), LUNs: []target.LUNMapping{{LU: lus[0]}}}}
	}})
	reads := func(who string, c *initiator.Conn) {
		t.Helper()
		if res, err := c.Command(cdbRead16(0, 1), 0, nil, 512); err != nil || res.Status != 0 {
			t.Errorf("%s: %v, %+v, expected to have the reservation", who, err, res)
		}
		if _, err := c.Logout(0); err != nil {
			t.Fatal(err)
		}
	}
	victim := r.login(as("alice", initiator.Options{}))
	for action, status := range map[string]byte{"REGISTER": persistentReserveOut(t, victim, actionRegister, 0, 0, 1), "RESERVE": persistentReserveOut(t, victim, actionReserve, 3, 1, 0)} {
		if status != 0 {
			t.Fatalf("%s: status %#x", action, status)
		}
	}
	reads("she", victim)
	if f := r.refused(as("bob", initiator.Options{})); f.Class != 2 || f.Detail != 2 {
		t.Errorf("another user: status %02x%02x, expected 0202", f.Class, f.Detail)
	}
	other := r.login(as("bob", initiator.Options{ISID: [6]byte{0x80, 9}}))
	if res, err := other.Command(cdbRead16(0, 1), 0, nil, 512); err != nil || res.Status != 0x18 {
		t.Errorf("another nexus: %v, %+v, expected RESERVATION CONFLICT", err, res)
	}
	reads("she again", r.login(as("alice", initiator.Options{})))
	settings := r.server.Settings()
	settings.Owners = target.NewOwners([]target.Owner{{Proof: login.Proof{Group: "tenants", User: "bob"}, Names: []string{initiator.DefaultInitiator}}})
	r.server.Reconfigure(settings)
	reads("whose the name is", r.login(as("bob", initiator.Options{})))
	settings.Owners = nil
	r.server.Reconfigure(settings)
	r.change(target.TargetConfig{Access: []target.AccessRule{{Auth: group("tenants", "alicia"), LUNs: []target.LUNMapping{{LU: r.lu}}}}})
	reads("she under another user's name", r.login(as("alicia", initiator.Options{})))
}

// TestLUNOfAnotherUserIsWithheld: a LUN that is mapped to a session whose initiator port
// another user has registered there is withheld from it, and nothing else is.
func TestLUNOfAnotherUserIsWithheld(t *testing.T) {
	counted := new(refusals.Counters)
	r := newRig(t, rigOptions{config: target.Config{Refusals: counted}})
	registered, other := r.lu, r.unit("other", nil)
	show := func(luns ...target.LUNMapping) {
		r.change(target.TargetConfig{Access: []target.AccessRule{{Auth: group("tenants", "alice", "bob"), LUNs: luns}}})
	}
	show(target.LUNMapping{LU: registered})
	alice := r.login(as("alice", initiator.Options{}))
	if status := persistentReserveOut(t, alice, actionRegister, 0, 0, 1); status != 0 {
		t.Fatalf("REGISTER: status %#x", status)
	}
	if _, err := alice.Logout(0); err != nil {
		t.Fatal(err)
	}
	show(target.LUNMapping{LU: other})
	bob := r.login(as("bob", initiator.Options{}))
	show(target.LUNMapping{LU: other}, target.LUNMapping{LUN: 1, LU: registered})
	if got := numbers(reportLUNs(t, bob)); !bytes.Equal(got, []byte{0}) {
		t.Errorf("found LUNs %v, expected 0 alone", got)
	}
	if got := testUnitReady(t, bob, 1); got != [2]byte{0x25, 0} {
		t.Errorf("sense %x, expected LOGICAL UNIT NOT SUPPORTED", got)
	}
	mustGood(t, ready(t, bob), nil)
	if n := counted.Of(refusals.LoginPort); n != 1 {
		t.Errorf("%d refusals are counted, expected one", n)
	}
}

// TestTightened: a change of who must prove what asks the sessions to leave that would not
// be admitted now, and those alone; they see nothing of what it maps.
func TestTightened(t *testing.T) {
	rules := func(auth login.Auth, lus ...*scsi.LogicalUnit) target.TargetConfig {
		c := target.TargetConfig{Access: []target.AccessRule{{Auth: auth}}}
		for i, lu := range lus {
			c.Access[0].LUNs = append(c.Access[0].LUNs, target.LUNMapping{LUN: uint16(i), LU: lu})
		}
		return c
	}
	rotated := group("tenants", "alice", "bob")
	rotated.Incoming[0].Secret = login.NewSecret("a rotated secret")
	for _, c := range []struct {
		name   string
		before login.Auth
		user   string
		after  login.Auth
		leaves bool
	}{
		{"CHAP is asked for", anyone, "", group("tenants", "alice"), true},
		{"the user is removed", group("tenants", "alice", "bob"), "alice", group("tenants", "bob"), true},
		{"another group is asked for", group("tenants", "alice"), "alice", group("others", "alice"), true},
		{"the secret is rotated", group("tenants", "alice"), "alice", rotated, false},
		{"CHAP is not asked for", group("tenants", "alice"), "alice", anyone, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, rigOptions{})
			r.change(rules(c.before, r.lu))
			conn := r.login(as(c.user, initiator.Options{}))
			dismissed := r.change(rules(c.after, r.lu, r.unit("new", nil)))
			if leaves := dismissed == 1; leaves != c.leaves {
				t.Fatalf("asked to leave: %v, expected %v", leaves, c.leaves)
			}
			if !c.leaves {
				if luns := reportLUNs(t, conn); len(luns) != 16 {
					t.Errorf("REPORT LUNS: %x, expected the new one as well", luns)
				}
				return
			}
			if p := event(t, conn); p.BHS[36] != byte(pdu.AsyncLogoutRequest) {
				t.Errorf("found event %x, expected a request to log out", p.BHS)
			}
			if luns := reportLUNs(t, conn); len(luns) != 0 {
				t.Errorf("REPORT LUNS: %x, expected none", luns)
			}
			if got := testUnitReady(t, conn, 0); got != [2]byte{0x25, 0} {
				t.Errorf("sense %x, expected LOGICAL UNIT NOT SUPPORTED", got)
			}
		})
	}
}

// TestNamesAreGiven: who logged in with a name before it was given to somebody else, or
// asks for targets as discovery does not allow any more, is asked to leave.
func TestNamesAreGiven(t *testing.T) {
	counted := new(refusals.Counters)
	r := newRig(t, rigOptions{config: target.Config{Refusals: counted}})
	claims, stays := r.login(initiator.Options{}), r.login(initiator.Options{Initiator: "iqn.2026-11.test:stays"})
	finder := r.dial(initiator.Options{Initiator: "iqn.2026-11.test:finds"})
	if _, err := finder.SendTargets("All"); err != nil {
		t.Fatal(err)
	}
	settings := r.server.Settings()
	settings.Owners = target.NewOwners([]target.Owner{{Proof: login.Proof{Group: "tenants", User: "bob"}, Names: []string{initiator.DefaultInitiator}}})
	settings.DiscoveryAuth = group("tenants", "bob")
	if n := r.server.Reconfigure(settings); n != 2 {
		t.Fatalf("%d sessions are to end, expected 2", n)
	}
	for _, c := range []*initiator.Conn{claims, finder} {
		if p := event(t, c); p.BHS[36] != byte(pdu.AsyncLogoutRequest) {
			t.Errorf("found event %x, expected a request to log out", p.BHS)
		}
	}
	if n := counted.Of(refusals.Withdrawn); n != 2 {
		t.Errorf("%d sessions are counted, expected 2", n)
	}
	mustGood(t, ready(t, stays), nil)
	if n := r.server.Reconfigure(settings); n != 0 {
		t.Errorf("%d sessions are to end without a change", n)
	}
}

// TestTightenedDuringLogin: a login that has begun before a change of what it is judged
// by is told to try again, and then judged by what holds.
func TestTightenedDuringLogin(t *testing.T) {
	for name, tighten := range map[string]func(*rig){
		"CHAP is asked for": func(r *rig) {
			r.change(target.TargetConfig{Access: []target.AccessRule{{Auth: group("tenants", "bob"), LUNs: []target.LUNMapping{{LU: r.lu}}}}})
		},
		"the name is given to a user": func(r *rig) {
			settings := r.server.Settings()
			settings.Owners = target.NewOwners([]target.Owner{{Proof: login.Proof{Group: "tenants", User: "bob"}, Names: []string{initiator.DefaultInitiator}}})
			r.server.Reconfigure(settings)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, rigOptions{})
			c := initiator.NewConn(dialStepped(t, r.addr, func() { tighten(r) }))
			var f *initiator.LoginFailure
			if err := c.Login(initiator.Options{Target: testTarget}); !errors.As(err, &f) || f.Class != 3 || f.Detail != 1 {
				t.Errorf("found %v, expected that the login is to be tried again", err)
			}
			if f := r.refused(initiator.Options{}); f.Class != 2 || f.Detail != 1 {
				t.Errorf("again: status %02x%02x, expected 0201", f.Class, f.Detail)
			}
		})
	}
}

// TestFlowsOfAName: what one user uses under a name that is nobody's is not taken from
// the limits of another who claims it; of a name's owner there is one.
func TestFlowsOfAName(t *testing.T) {
	const rate = 1 << 40
	policy, err := scheduler.NewPolicy([]scheduler.Rule{{Name: "all", Initiators: []string{"*"}, Limit: scheduler.Rate{IOPS: rate}, Weight: 1}}, nil, scheduler.Cost{})
	if err != nil {
		t.Fatal(err)
	}
	bob := login.Proof{Group: "tenants", User: "bob"}
	r := newRig(t, rigOptions{config: target.Config{QoS: target.QoS{Policy: policy}, Owners: target.NewOwners([]target.Owner{{Proof: bob, Names: []string{"iqn.2026-11.test:bob"}}})},
		rules: func(lus []*scsi.LogicalUnit) []target.AccessRule {
			return []target.AccessRule{{Auth: group("tenants", "alice", "bob", "carol"), LUNs: []target.LUNMapping{{LU: lus[0]}}}}
		}})
	r.login(as("alice", initiator.Options{}))
	r.login(as("carol", initiator.Options{ISID: [6]byte{0x80, 9}}))
	r.login(as("bob", initiator.Options{Initiator: "iqn.2026-11.test:bob"}))
	found := map[string]bool{}
	for _, x := range r.server.QoS("").Flows {
		found[policy.Resolve(x.Flow)[scheduler.InitiatorLevel].Key] = true
	}
	for _, want := range []string{"initiator " + initiator.DefaultInitiator + " as tenants/alice", "initiator " + initiator.DefaultInitiator + " as tenants/carol", "initiator iqn.2026-11.test:bob"} {
		if !found[want] {
			t.Errorf("found %v, expected %q", found, want)
		}
	}
}

// TestJoiningFromElsewhere: a connection from where other LUNs are granted does not join
// a session.
func TestJoiningFromElsewhere(t *testing.T) {
	r := newRig(t, rigOptions{lus: 2, config: target.Config{Limits: target.Limits{MaxConnections: 2}},
		rules: func(lus []*scsi.LogicalUnit) []target.AccessRule {
			return []target.AccessRule{
				{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}, Auth: anyone, LUNs: []target.LUNMapping{{LU: lus[1]}}},
				{Auth: anyone, LUNs: []target.LUNMapping{{LU: lus[0]}}},
			}
		}})
	c := r.login(initiator.Options{Keys: initiator.Keys{{Name: "MaxConnections", Value: "2"}}})
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	conn, err := from.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var f *initiator.LoginFailure
	if _, err := c.JoinOver(conn, initiator.Options{Target: testTarget, CID: 1}); !errors.As(err, &f) || f.Class != 2 || f.Detail != 2 {
		t.Errorf("found %v, expected status 0202", err)
	}
}
