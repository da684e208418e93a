package target_test

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/errstore"
	"lunar/internal/eventually"
	"lunar/internal/evloop"
	"lunar/internal/initiator"
	"lunar/target"
	"lunar/target/login"
	"lunar/target/pdu"
	"lunar/target/scsi"
)

const otherName = "iqn.2026-11.lunar:other"

// unit makes a logical unit that the server does not know yet.
func (r *rig) unit(name string, store backstore.Store) *scsi.LogicalUnit {
	r.t.Helper()
	if store == nil {
		var err error
		if store, err = backstore.NewRAM(1<<20, 512); err != nil {
			r.t.Fatal(err)
		}
	}
	lu, err := scsi.NewLogicalUnit(scsi.LUConfig{Name: name, Store: store, Logger: testLogger(r.t)})
	if err != nil {
		r.t.Fatal(err)
	}
	return lu
}

// grant makes the test target show LUNs to everyone.
func (r *rig) grant(luns ...target.LUNMapping) {
	r.t.Helper()
	r.change(target.TargetConfig{Access: []target.AccessRule{{Auth: login.Auth{AllowNone: true}, LUNs: luns}}})
}

func (r *rig) change(c target.TargetConfig) (dismissed int) {
	r.t.Helper()
	c.Name = testTarget
	if c.PortalGroups == nil {
		c.PortalGroups = []uint16{1}
	}
	dismissed, err := r.server.ChangeTarget(c)
	if err != nil {
		r.t.Fatal(err)
	}
	return dismissed
}

func (r *rig) remove(lu *scsi.LogicalUnit) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := r.server.RemoveLogicalUnit(ctx, lu); err != nil {
		r.t.Fatal(err)
	}
}

// redirect is where a login was sent.
func redirect(f *initiator.LoginFailure) string {
	for _, k := range f.Keys {
		if k.Name == "TargetAddress" {
			return k.Value
		}
	}
	return ""
}

// testUnitReady runs the command and returns additional sense code and qualifier.
func testUnitReady(t *testing.T, c *initiator.Conn, lun uint64) [2]byte {
	t.Helper()
	res, err := c.Command(make([]byte, 6), lun, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, asc, ascq := res.SenseKey()
	return [2]byte{asc, ascq}
}

// event returns the next asynchronous message.
func event(t *testing.T, c *initiator.Conn) *initiator.PDU {
	t.Helper()
	for len(c.Async) == 0 {
		if _, err := c.Step(patience); err != nil {
			t.Fatal(err)
		}
	}
	p := c.Async[0]
	c.Async = c.Async[1:]
	return p
}

// numbers are the LUNs below 256 of a list.
func numbers(list []byte) (luns []byte) {
	for at := 0; at < len(list); at += 8 {
		luns = append(luns, list[at+1])
	}
	return luns
}

// laneless is a store without lanes, until it is whole.
type laneless struct {
	backstore.Store
	panics bool
	whole  atomic.Bool
}

func (l *laneless) Lane(loop *evloop.Loop) (backstore.Lane, error) {
	switch {
	case l.whole.Load():
		return l.Store.Lane(loop)
	case l.panics:
		panic("no lane")
	}
	return nil, errors.New("no lane")
}

// TestLUNWithoutLane: a LUN that cannot be opened, because of an error or a panic of its
// store, is not there; the session keeps the others, as do those that log in later.
func TestLUNWithoutLane(t *testing.T) {
	for _, panics := range []bool{false, true} {
		r := newRig(t, rigOptions{})
		c := r.login(initiator.Options{})
		ram, err := backstore.NewRAM(1<<20, 512)
		if err != nil {
			t.Fatal(err)
		}
		broken := &laneless{Store: ram, panics: panics}
		r.grant(target.LUNMapping{LUN: 0, LU: r.lu}, target.LUNMapping{LUN: 1, LU: r.unit("broken", broken)}, target.LUNMapping{LUN: 2, LU: r.unit("whole", nil)})
		for _, c := range []*initiator.Conn{c, r.login(initiator.Options{ISID: [6]byte{2}})} {
			if got := numbers(reportLUNs(t, c)); !bytes.Equal(got, []byte{0, 2}) {
				t.Errorf("panic %v: found LUNs %v, expected 0 and 2", panics, got)
			}
			for _, lun := range []uint64{0, 2} {
				if err := c.Ready(lun); err != nil {
					t.Errorf("panic %v: LUN %d: %v", panics, lun, err)
				}
			}
			if got := testUnitReady(t, c, 1); got != [2]byte{0x25, 0} {
				t.Errorf("panic %v: sense %x, expected LOGICAL UNIT NOT SUPPORTED", panics, got)
			}
		}
		broken.whole.Store(true) // for its end
	}
}

// TestDrainedGoOn: the initiators of a portal that is drained are asked to leave, and go
// on until they do.
func TestDrainedGoOn(t *testing.T) {
	r := newRig(t, rigOptions{})
	c := r.login(initiator.Options{})
	if n := r.server.Drain(target.Drain{Tag: 1}); n != 1 {
		t.Fatalf("%d sessions are to end, expected one", n)
	}
	if p := event(t, c); p.BHS[36] != byte(pdu.AsyncLogoutRequest) {
		t.Errorf("found event %x, expected a request to log out", p.BHS)
	}
	res, err := c.Command(cdbWrite16(0, 8), 0, pattern(4096, 1), 0)
	mustGood(t, res, err)
}

// TestLUNsChange: a LUN that is added is announced and works, one that is taken
// away finishes what it has begun and is closed, and a session that is granted
// the same as before notices nothing.
func TestLUNsChange(t *testing.T) {
	r := newRig(t, rigOptions{})
	bystander := r.unit("bystander", nil)
	if _, err := r.server.AddTarget(target.TargetConfig{Name: otherName, PortalGroups: []uint16{1},
		Access: []target.AccessRule{{Auth: login.Auth{AllowNone: true}, LUNs: []target.LUNMapping{{LU: bystander}}}}}); err != nil {
		t.Fatal(err)
	}
	other := r.login(initiator.Options{Target: otherName})
	c := r.login(initiator.Options{})

	added := r.unit("added", nil)
	r.grant(target.LUNMapping{LUN: 0, LU: r.lu}, target.LUNMapping{LUN: 3, LU: added})
	news := event(t, c)
	if news.BHS[36] != byte(pdu.AsyncSCSIEvent) || len(news.Data) < 16 || news.Data[14] != 0x3f || news.Data[15] != 0x0e {
		t.Errorf("found event %x with %x, expected REPORTED LUNS DATA HAS CHANGED", news.BHS, news.Data)
	}
	if got := testUnitReady(t, c, 0); got != [2]byte{0x3f, 0x0e} {
		t.Errorf("found sense %x, expected REPORTED LUNS DATA HAS CHANGED", got)
	}
	if got := numbers(reportLUNs(t, c)); !bytes.Equal(got, []byte{0, 3}) {
		t.Errorf("found LUNs %v", got)
	}
	if err := c.Ready(3); err != nil {
		t.Error(err)
	}
	data := pattern(4096, 1)
	task, err := c.Start(initiator.Command{CDB: cdbWrite16(0, 512), Out: pattern(512*512, 2), HoldData: true})
	if err != nil {
		t.Fatal(err)
	}
	for len(task.R2Ts) == 0 {
		if _, err := c.Step(patience); err != nil {
			t.Fatal(err)
		}
	}

	r.grant(target.LUNMapping{LUN: 3, LU: added, ReadOnly: true})
	if got := testUnitReady(t, c, 0); got != [2]byte{0x25, 0} {
		t.Errorf("found sense %x of a LUN that is gone, expected LOGICAL UNIT NOT SUPPORTED", got)
	}
	if got := [][2]byte{testUnitReady(t, c, 3), testUnitReady(t, c, 3), testUnitReady(t, c, 3)}; !slices.Equal(got, [][2]byte{{0x2a, 0x01}, {0x3f, 0x0e}, {}}) {
		t.Errorf("found senses %x, expected that mode parameters and LUNs have changed", got)
	}
	res, err := c.Command(cdbWrite16(0, 8), 3, data, 0)
	if err != nil || res.Sense[12] != 0x27 {
		t.Errorf("found %v, %+v, expected that writes are refused", err, res)
	}
	removed := make(chan struct{})
	go func() { r.remove(r.lu); close(removed) }()
	select {
	case <-removed:
		t.Error("a logical unit was closed with a command under way")
	default:
	}
	task.Command.HoldData = false
	if err := c.SendData(task); err != nil {
		t.Fatal(err)
	}
	if res, err := c.Wait(task); err != nil || res.Status != 0 {
		t.Errorf("found %v, %+v, expected that the command is finished", err, task.Result)
	}
	<-removed
	if got := numbers(reportLUNs(t, c)); !bytes.Equal(got, []byte{3}) {
		t.Errorf("found LUNs %v", got)
	}
	for _, seen := range r.server.Sessions() {
		if seen.Target == testTarget && (len(seen.LUNs) != 1 || seen.LUNs[0].LU != added) {
			t.Errorf("found %+v", seen)
		}
	}
	if got := testUnitReady(t, other, 0); got != [2]byte{} || len(other.Async) > 0 {
		t.Errorf("found sense %x and events %v, expected that the other session notices nothing", got, other.Async)
	}
	if _, err := c.Logout(0); err != nil {
		t.Error(err)
	}
}

// TestRemoveHangs: a command that waits for its initiator is ended after a
// while, one that the store has is waited for.
func TestRemoveHangs(t *testing.T) {
	ram, err := backstore.NewRAM(1<<20, 512)
	if err != nil {
		t.Fatal(err)
	}
	store := errstore.Wrap(ram)
	r := newRig(t, rigOptions{store: store, config: target.Config{DrainTime: 50 * time.Millisecond}})
	c := r.login(initiator.Options{})
	writing, err := c.Start(initiator.Command{CDB: cdbWrite16(0, 512), Out: pattern(512*512, 2), HoldData: true})
	if err != nil {
		t.Fatal(err)
	}
	for len(writing.R2Ts) == 0 {
		if _, err := c.Step(patience); err != nil {
			t.Fatal(err)
		}
	}
	store.SetRules(errstore.Rule{Kinds: []backstore.Kind{backstore.Read}, Hold: true})
	reading, err := c.Start(initiator.Command{CDB: cdbRead16(0, 8), InLen: 4096})
	if err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the read is held", func() bool { return store.Held() > 0 })
	r.grant(target.LUNMapping{LUN: 1, LU: r.unit("b", nil)})
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	if err := r.server.RemoveLogicalUnit(ctx, r.lu); err == nil || !strings.Contains(err.Error(), "in use: 1 sessions") {
		t.Errorf("found %v, expected that it is in use", err)
	}
	if _, err := c.Wait(writing); err != nil || writing.Result.Sense[12] != 0x25 {
		t.Errorf("found %v, %+v, expected LOGICAL UNIT NOT SUPPORTED", err, writing.Result)
	}
	store.SetRules()
	store.Release(-1)
	r.remove(r.lu)
	if _, err := c.Wait(reading); err != nil {
		t.Error(err)
	}
}

// TestWithdrawn: who may not use a target any more is asked to log out, and
// disconnected if it does not.
func TestWithdrawn(t *testing.T) {
	r := newRig(t, rigOptions{})
	polite := r.login(initiator.Options{Initiator: "iqn.2026-11.test:polite"}) // in its own time
	settings := r.server.Settings()
	settings.LogoutTime = 100 * time.Millisecond
	r.server.Reconfigure(settings)
	stubborn := r.login(initiator.Options{Initiator: "iqn.2026-11.test:stubborn"})
	stays := r.login(initiator.Options{Initiator: "iqn.2026-11.test:stays"})
	if n := r.change(target.TargetConfig{Access: []target.AccessRule{{Initiators: []string{"*:stays"},
		Auth: login.Auth{AllowNone: true}, LUNs: []target.LUNMapping{{LU: r.lu}}}}}); n != 2 {
		t.Errorf("found %d sessions that are to end, expected 2", n)
	}
	for _, c := range []*initiator.Conn{polite, stubborn} {
		if p := event(t, c); p.BHS[36] != byte(pdu.AsyncLogoutRequest) {
			t.Errorf("found event %x, expected a request to log out", p.BHS)
		}
	}
	if code, err := polite.Logout(0); err != nil || code != 0 {
		t.Errorf("logout: %d, %v", code, err)
	}
	if p, err := stubborn.Step(patience); err != nil || p.BHS[36] != byte(pdu.AsyncDropSession) || p.BHS[41] != 2 {
		t.Errorf("found %v, %v, expected to be told of being dropped", p, err)
	}
	if _, err := stubborn.Receive(patience); !errors.Is(err, initiator.ErrClosed) {
		t.Errorf("%v, expected the end of a session that was withdrawn", err)
	}
	if got := testUnitReady(t, stays, 0); got != [2]byte{} || len(stays.Async) > 0 {
		t.Errorf("found sense %x, expected that the session that stays notices nothing", got)
	}
	if f := r.refused(initiator.Options{Initiator: "iqn.2026-11.test:polite"}); f.Class != 2 || f.Detail != 3 {
		t.Errorf("found %+v, expected an authorization failure", f)
	}
	if n := r.server.RemoveTarget(testTarget); n != 1 {
		t.Errorf("found %d sessions that are to end, expected 1", n)
	}
	if p := event(t, stays); p.BHS[36] != byte(pdu.AsyncLogoutRequest) {
		t.Errorf("found event %x, expected a request to log out", p.BHS)
	}
	if f := r.refused(initiator.Options{}); f.Class != 2 || f.Detail != 3 {
		t.Errorf("found %+v, expected that the target is not found", f)
	}
	if _, err := r.server.ChangeTarget(target.TargetConfig{Name: testTarget}); err == nil {
		t.Error("a target was changed that is not there")
	}
}

// TestDrain: sessions on a drained portal are asked to log out, and logins are
// refused or redirected, but for discovery.
func TestDrain(t *testing.T) {
	r := newRig(t, rigOptions{})
	at := netip.MustParseAddrPort(r.addr)
	c := r.login(initiator.Options{})
	if n := r.server.Drain(target.Drain{Tag: 1, Portal: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.9"), at.Port())}); n != 0 {
		t.Errorf("%d sessions are to end for another portal", n)
	}
	if n := r.server.Drain(target.Drain{Tag: 1, Portal: at}); n != 1 {
		t.Errorf("%d sessions are to end, expected 1", n)
	}
	if p := event(t, c); p.BHS[36] != byte(pdu.AsyncLogoutRequest) {
		t.Errorf("found event %x, expected a request to log out", p.BHS)
	}
	if _, err := c.Logout(0); err != nil {
		t.Error(err)
	}
	if f := r.refused(initiator.Options{}); f.Class != 3 || f.Detail != 1 {
		t.Errorf("found %+v, expected that the service is unavailable", f)
	}
	r.server.Drain(target.Drain{Tag: 1, Portal: at, Redirect: "192.0.2.1:3260"})
	if f := r.refused(initiator.Options{}); f.Class != 1 || f.Detail != 1 || redirect(f) != "192.0.2.1:3260" {
		t.Errorf("found %+v, expected a redirection", f)
	}
	discovery := r.dial(initiator.Options{})
	if found, err := discovery.SendTargets("All"); err != nil || len(found) != 1 {
		t.Errorf("found %v, %v", found, err)
	}
	if len(r.server.Drains()) != 2 || !r.server.Undrain(target.Drain{Tag: 1, Portal: at}) || r.server.Undrain(target.Drain{Tag: 1, Portal: at}) {
		t.Errorf("found %v", r.server.Drains())
	}
	c = r.login(initiator.Options{})
	kicked := r.server.Kick(func(n target.SessionStats) bool { return n.Target == testTarget })
	if p := event(t, c); kicked != 1 || p.BHS[36] != byte(pdu.AsyncLogoutRequest) {
		t.Errorf("found event %x of %d, expected a request to log out", p.BHS, kicked)
	}
	rules := []target.AccessRule{{Auth: login.Auth{AllowNone: true}, LUNs: []target.LUNMapping{{LU: r.lu}}}}
	r.change(target.TargetConfig{Access: rules, Redirect: "[2001:db8::1]:3260"})
	if f := r.refused(initiator.Options{}); f.Class != 1 || f.Detail != 1 || redirect(f) != "[2001:db8::1]:3260" {
		t.Errorf("found %+v, expected a redirection", f)
	}
	r.change(target.TargetConfig{Access: rules, Moved: "192.0.2.2:3260"})
	if f := r.refused(initiator.Options{}); f.Class != 1 || f.Detail != 2 || redirect(f) != "192.0.2.2:3260" {
		t.Errorf("found %+v, expected a redirection for good", f)
	}
}

// TestPortalsChange: sockets that stay are not touched, sessions that came by one
// that goes are asked to leave, and what cannot be opened changes nothing.
func TestPortalsChange(t *testing.T) {
	listen, port := loopback(t)
	r := newRig(t, rigOptions{listen: listen})
	c := r.login(initiator.Options{})
	prepare := func(groups ...target.PortalGroup) int {
		t.Helper()
		change, err := r.server.PreparePortals(groups)
		if err != nil {
			t.Fatal(err)
		}
		return change.Commit()
	}
	if n := prepare(target.PortalGroup{Tag: 1, Portals: portals(t, r.server, listen, "127.0.0.2:0")}); n != 0 || len(r.server.Addrs(1)) != 2 || r.server.Addrs(1)[0].String() != r.addr {
		t.Errorf("%d sessions are to end; the portals are %v", n, r.server.Addrs(1))
	}
	second := r.server.Addrs(1)[1].String()
	taken := r.server.Addrs(1)[1].String()
	_, err := r.server.PreparePortals([]target.PortalGroup{{Tag: 1, Portals: portals(t, r.server, listen, "127.0.0.3:0", "192.0.2.1:1")}})
	if err == nil || !strings.Contains(err.Error(), "192.0.2.1:1") {
		t.Errorf("found %v, expected the portal that cannot be opened", err)
	}
	if r.addr = taken; len(r.server.Addrs(1)) != 2 {
		t.Errorf("the portals are %v", r.server.Addrs(1))
	}
	d := r.login(initiator.Options{ISID: [6]byte{0x80, 9}})
	// All addresses of the port of one: that one makes room.
	if n := prepare(target.PortalGroup{Tag: 1, Portals: portals(t, r.server, "127.0.0.2:0", ":"+port)}); n != 0 {
		t.Errorf("%d sessions are to end, expected none: both are still served", n)
	}
	r.addr = "127.0.0.1:" + port
	_ = r.login(initiator.Options{ISID: [6]byte{0x80, 8}})
	if got := testUnitReady(t, c, 0); got != [2]byte{} {
		t.Errorf("found sense %x", got)
	}
	if n := prepare(target.PortalGroup{Tag: 1, Portals: portals(t, r.server, ":"+port)}, target.PortalGroup{Tag: 2, Portals: portals(t, r.server, "127.0.0.2:0")}); n != 1 {
		t.Errorf("%d sessions are to end, expected the one of %s", n, second)
	}
	if p := event(t, d); p.BHS[36] != byte(pdu.AsyncLogoutRequest) {
		t.Errorf("found event %x, expected a request to log out", p.BHS)
	}
	if n := prepare(target.PortalGroup{Tag: 1, Portals: portals(t, r.server, ":"+port), Redirect: "192.0.2.1:1"}); n != 2 {
		t.Errorf("%d sessions are to end, expected 2", n)
	}
	if f := r.refused(initiator.Options{}); f.Class != 1 || redirect(f) != "192.0.2.1:1" {
		t.Errorf("found %+v, expected a redirection", f)
	}
}

// TestSpread: a logical unit's threads become more and fewer, none of them is in
// the group twice, and those that stay are the same.
func TestSpread(t *testing.T) {
	r := newRig(t, rigOptions{config: target.Config{Threads: 4}, lus: 3, group: 2})
	first := r.server.Group(r.lu)
	for _, n := range []int{4, 3, 1, 2, 9, 0} {
		r.server.SpreadLogicalUnit(r.lu, n)
		group := r.server.Group(r.lu)
		sorted := slices.Sorted(slices.Values(group))
		if want := min(max(n, 1), 4); len(group) != want || len(slices.Compact(sorted)) != want || group[0] != first[0] {
			t.Errorf("%d threads: found %v, which began as %v", n, group, first)
		}
	}
}

// TestAbandon: a unit whose store cannot be flushed is given up only by who accepts that
// data may be lost, and not while it is in use.
func TestAbandon(t *testing.T) {
	ram, err := backstore.NewRAM(1<<20, 512)
	if err != nil {
		t.Fatal(err)
	}
	store := errstore.Wrap(ram, errstore.Rule{Kinds: []backstore.Kind{backstore.Flush}, Err: errors.New("broken")})
	r := newRig(t, rigOptions{store: store})
	c := r.login(initiator.Options{})
	brief, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := r.server.DetachLogicalUnit(brief, r.lu, true); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("found %v, expected that it is in use", err)
	}
	r.grant(target.LUNMapping{LUN: 1, LU: r.unit("b", nil)})
	if err := r.server.RemoveLogicalUnit(t.Context(), r.lu); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("found %v, expected that it cannot be flushed", err)
	}
	if _, err := r.server.DetachLogicalUnit(t.Context(), r.lu, false); err == nil || !strings.Contains(err.Error(), "would be lost") {
		t.Errorf("found %v, expected what would be lost", err)
	}
	if _, err := r.server.DetachLogicalUnit(t.Context(), r.lu, true); err != nil {
		t.Error(err)
	}
	if _, err := r.server.DetachLogicalUnit(t.Context(), r.lu, true); err == nil {
		t.Error("it was given up twice")
	}
	if err := c.Ping(nil); err != nil {
		t.Error(err)
	}
}
