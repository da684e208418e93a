package target_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"testing"

	"lunar/internal/initiator"
	"lunar/target"
	"lunar/target/login"
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
	r := newRig(t, rigOptions{
		config: target.Config{Limits: target.Limits{MaxConnections: 2}},
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
	mustGood(t, ready(t, victim), nil)
	second, err := victim.Join(ctx, r.addr, as("alice", initiator.Options{Target: testTarget, CID: 1}))
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	r.login(as("alice", shared))
	if _, err := victim.Receive(patience); !errors.Is(err, initiator.ErrClosed) {
		t.Errorf("%v, expected that her own login replaces the session", err)
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
