package target_test

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"lunar/internal/initiator"
	"lunar/target"
	"lunar/target/login"
	"lunar/target/scsi"
)

func TestSessionReinstatement(t *testing.T) {
	r := newRig(t, rigOptions{})
	old := r.login(initiator.Options{})
	fresh := r.login(initiator.Options{})
	if _, err := old.Receive(patience); !errors.Is(err, initiator.ErrClosed) {
		t.Fatalf("%v, expected that a login of the same initiator port ends the old session", err)
	}
	other := r.login(initiator.Options{ISID: [6]byte{0x80, 1, 2, 3, 4, 5}})
	for _, c := range []*initiator.Conn{fresh, other} {
		res, err := c.Command(make([]byte, 6), 0, nil, 0)
		mustGood(t, res, err)
	}
}

func (r *rig) refused(o initiator.Options) *initiator.LoginFailure {
	r.t.Helper()
	if o.Target == "" {
		o.Target = testTarget
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := initiator.Dial(ctx, r.addr, o)
	var f *initiator.LoginFailure
	if !errors.As(err, &f) {
		if c != nil {
			c.Close()
		}
		r.t.Fatalf("login: %v, expected a status", err)
	}
	return f
}

func TestLoginRefusals(t *testing.T) {
	r := newRig(t, rigOptions{rules: func(lus []*scsi.LogicalUnit) []target.AccessRule {
		return []target.AccessRule{{Initiators: []string{"iqn.2026-01.lunar:*"}, Auth: login.Auth{AllowNone: true}}}
	}})
	for _, f := range []struct {
		name          string
		o             initiator.Options
		class, detail byte
	}{
		{"no such target", initiator.Options{Target: "iqn.2026-11.lunar:none"}, 2, 3},
		{"initiator without a rule", initiator.Options{Initiator: "iqn.2026-01.evil:x"}, 2, 3},
		{"no such session", initiator.Options{TSIH: 4711}, 2, 0x0a},
	} {
		if got := r.refused(f.o); got.Class != f.class || got.Detail != f.detail {
			t.Errorf("%s: status %02x%02x, expected %02x%02x", f.name, got.Class, got.Detail, f.class, f.detail)
		}
	}
}

func TestSessionLimit(t *testing.T) {
	r := newRig(t, rigOptions{config: target.Config{Limits: target.Limits{Sessions: 1}}})
	r.login(initiator.Options{ISID: [6]byte{1}})
	if got := r.refused(initiator.Options{ISID: [6]byte{2}}); got.Class != 3 || got.Detail != 2 {
		t.Fatalf("status %02x%02x, expected out of resources", got.Class, got.Detail)
	}
	r.login(initiator.Options{ISID: [6]byte{1}}) // replacing a session needs no room
}

func TestCHAP(t *testing.T) {
	secret, back := "initiator-secret-1", "target-secret-22"
	r := newRig(t, rigOptions{rules: func(lus []*scsi.LogicalUnit) []target.AccessRule {
		return []target.AccessRule{{
			Auth: login.Auth{
				Incoming: []login.Credential{{User: "alice", Secret: login.NewSecret(secret)}},
				Mutual:   &login.Credential{User: "lunar", Secret: login.NewSecret(back)},
			},
			LUNs: []target.LUNMapping{{LUN: 0, LU: lus[0]}},
		}}
	}})
	for _, algorithms := range [][]int{{5}, {99, 5}, {6}, {7}, {8}, {5, 6, 7, 8}, {8, 5}, {6, 7}} { // none weaker than before
		c := r.login(initiator.Options{CHAP: &initiator.CHAP{
			User: "alice", Secret: []byte(secret), MutualUser: "lunar", MutualSecret: []byte(back), Algorithms: algorithms,
		}})
		if _, err := c.Logout(0); err != nil {
			t.Fatal(err)
		}
	}
	for _, bad := range []initiator.Options{
		{CHAP: &initiator.CHAP{User: "alice", Secret: []byte("wrong-secret-12")}},
		{CHAP: &initiator.CHAP{User: "mallory", Secret: []byte(secret)}},
		{},
	} {
		if got := r.refused(bad); got.Class != 2 || got.Detail != 1 {
			t.Errorf("status %02x%02x, expected authentication failure", got.Class, got.Detail)
		}
	}
}

func TestMappingAndReadOnlyByInitiator(t *testing.T) {
	r := newRig(t, rigOptions{lus: 2, rules: func(lus []*scsi.LogicalUnit) []target.AccessRule {
		return []target.AccessRule{
			{Initiators: []string{"iqn.2026-01.lunar:reader"}, Auth: login.Auth{AllowNone: true},
				LUNs: []target.LUNMapping{{LUN: 7, LU: lus[0], ReadOnly: true}}},
			{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Auth: login.Auth{AllowNone: true},
				LUNs: []target.LUNMapping{{LUN: 0, LU: lus[0]}, {LUN: 300, LU: lus[1]}}},
		}
	}})
	writer := r.login(initiator.Options{})
	data := pattern(512, 5)
	res, err := writer.Command(cdbWrite16(1, 1), 0, data, 0)
	mustGood(t, res, err)
	if luns := reportLUNs(t, writer); !bytes.Equal(luns, []byte{0, 0, 0, 0, 0, 0, 0, 0, 0x41, 0x2c, 0, 0, 0, 0, 0, 0}) {
		t.Errorf("REPORT LUNS of the writer: %x", luns)
	}

	reader := r.dial(initiator.Options{Target: testTarget, Initiator: "iqn.2026-01.lunar:reader"})
	if err := reader.Ready(7); err != nil {
		t.Fatal(err)
	}
	if luns := reportLUNs(t, reader); !bytes.Equal(luns, []byte{0, 7, 0, 0, 0, 0, 0, 0}) {
		t.Errorf("REPORT LUNS of the reader: %x", luns)
	}
	res, err = reader.Command(cdbRead16(1, 1), 7, nil, 512)
	if !bytes.Equal(mustGood(t, res, err).In, data) {
		t.Error("the reader sees other data")
	}
	res, err = reader.Command(cdbWrite16(1, 1), 7, data, 0)
	if err != nil {
		t.Fatal(err)
	}
	if key, asc, _ := res.SenseKey(); key != 7 || asc != 0x27 {
		t.Errorf("write by the reader: sense %x/%02x, expected 7/27", key, asc)
	}
	res, err = reader.Command(cdbRead16(1, 1), 0, nil, 512)
	if err != nil {
		t.Fatal(err)
	}
	if key, asc, _ := res.SenseKey(); key != 5 || asc != 0x25 {
		t.Errorf("read of a LUN that is not mapped: sense %x/%02x, expected 5/25", key, asc)
	}
}

func reportLUNs(t *testing.T, c *initiator.Conn) []byte {
	t.Helper()
	cdb := make([]byte, 12)
	cdb[0], cdb[8] = 0xa0, 4
	res, err := c.Command(cdb, 0, nil, 1024)
	return mustGood(t, res, err).In[8:]
}

func TestDiscovery(t *testing.T) {
	r := newRig(t, rigOptions{config: target.Config{DiscoveryAuth: login.Auth{
		Incoming: []login.Credential{{User: "finder", Secret: login.NewSecret("discovery-secret")}},
	}}})
	if _, err := r.server.AddTarget(target.TargetConfig{Name: "iqn.2026-11.lunar:other", PortalGroups: []uint16{1},
		Access: []target.AccessRule{{Initiators: []string{"iqn.2026-01.friend:*"}}}}); err != nil {
		t.Fatal(err)
	}
	chap := &initiator.CHAP{User: "finder", Secret: []byte("discovery-secret")}
	for name, want := range map[string]int{"iqn.2026-01.lunar:x": 1, "iqn.2026-01.friend:x": 2} {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		c, err := initiator.Dial(ctx, r.addr, initiator.Options{Initiator: name, CHAP: chap})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		found, err := c.SendTargets("All")
		if err != nil || len(found) != want {
			t.Errorf("%s: found %v, %v, expected %d", name, found, err, want)
		}
		if len(found) > 0 && (len(found[0].Addresses) != 1 || found[0].Addresses[0] != r.addr+",1") {
			t.Errorf("%s: addresses %v, expected %s,1", name, found[0].Addresses, r.addr)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := initiator.Dial(ctx, r.addr, initiator.Options{}); err == nil {
		t.Error("discovery without credentials")
	}
}

// watchful asks who is silent soon, and leaves enough time to answer for a test that is
// kept from running.
var watchful = rigOptions{config: target.Config{NOPInterval: 50 * time.Millisecond, NOPTimeout: 2 * time.Second}}

func TestDeadPeerIsFound(t *testing.T) {
	t.Parallel()
	r := newRig(t, watchful)
	c := r.login(initiator.Options{})
	p, err := c.Receive(patience)
	if err != nil {
		t.Fatal(err)
	}
	if p.Opcode() != initiator.OpNOPIn || p.ITT() != initiator.NoTag {
		t.Fatalf("opcode %#x, expected a NOP-In that asks", p.Opcode())
	}
	if _, err := c.Receive(patience); !errors.Is(err, initiator.ErrClosed) {
		t.Fatalf("%v, expected the target to close", err)
	}
}

func TestPing(t *testing.T) {
	r := newRig(t, rigOptions{})
	c := r.login(initiator.Options{DataDigest: "CRC32C"})
	for _, n := range []int{0, 1, 4096, 8192} {
		if err := c.Ping(pattern(n, 9)); err != nil {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// An initiator that answers pings but never sends the data that it was asked
// for holds buffers that others wait for.
func TestWithheldDataEndsTheSession(t *testing.T) {
	t.Parallel()
	r := newRig(t, watchful)
	c := r.login(initiator.Options{})
	start(t, c, initiator.Command{CDB: cdbWrite16(0, 2048), Out: pattern(1<<20, 2), HoldData: true})
	for until := time.Now().Add(patience); time.Now().Before(until); {
		p, err := c.Step(20 * time.Millisecond)
		if errors.Is(err, initiator.ErrClosed) {
			return
		}
		if err == nil && p != nil && p.Opcode() == initiator.OpNOPIn {
			pong := initiator.NewPDU(initiator.OpNOPOut, initiator.FlagFinal, nil)
			pong.SetImmediate()
			pong.SetU32(16, initiator.NoTag)
			pong.SetU32(20, p.TTT())
			if err := c.Send(pong); err != nil {
				return
			}
		}
	}
	t.Fatal("the session goes on")
}

// Who may only read a unit does not change it for those who may write.
func TestReaderDoesNotChangeTheUnit(t *testing.T) {
	r := newRig(t, rigOptions{rules: func(lus []*scsi.LogicalUnit) []target.AccessRule {
		return []target.AccessRule{{Auth: login.Auth{AllowNone: true}, LUNs: []target.LUNMapping{{LUN: 0, LU: lus[0], ReadOnly: true}}}}
	}})
	c := r.login(initiator.Options{})
	swp := append([]byte{0, 0, 0, 0, 0x0a, 0x0a, 0, 0, 0x08}, make([]byte, 7)...)
	for name, cmd := range map[string]initiator.Command{
		"STOP":        {CDB: []byte{0x1b, 0, 0, 0, 0, 0}},
		"MODE SELECT": {CDB: []byte{0x15, 0x10, 0, 0, byte(len(swp)), 0}, Out: swp},
	} {
		res, err := c.Do(cmd)
		if err != nil {
			t.Fatal(err)
		}
		if key, asc, _ := res.SenseKey(); key != 7 || asc != 0x27 {
			t.Errorf("%s: sense %x/%02x, expected 7/27", name, key, asc)
		}
	}
}

// A connection that replaces its session's keeps what the session has agreed.
func TestConnectionReinstatementKeepsTheSession(t *testing.T) {
	r := newRig(t, rigOptions{})
	old := r.login(initiator.Options{})
	c := r.login(initiator.Options{TSIH: old.TSIH, Bare: true})
	p := command(c, cdbWrite16(0, 8), 0x20, 4096, nil)
	if err := c.Send(p); err != nil {
		t.Fatal(err)
	}
	if err := c.Send(dataOut(p.ITT(), 0, 0, 4096, initiator.FlagFinal)); err != nil {
		t.Fatal(err)
	}
	if _, status := answers(t, c, p.ITT()); status != 0 {
		t.Fatalf("unsolicited data, which the session allows: status %#x", status)
	}
}
