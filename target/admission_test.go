package target_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"lunar/internal/eventually"
	"lunar/internal/initiator"
	"lunar/internal/places"
	"lunar/internal/refusals"
	"lunar/target"
	"lunar/target/login"
	"lunar/target/scsi"
)

// from dials the rig from an address of the loopback network.
func (r *rig) from(addr string) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(addr)}}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return d.DialContext(ctx, "tcp", r.addr)
}

// loginFrom logs in from an address; the connection is closed with the test.
func (r *rig) loginFrom(addr string, o initiator.Options) (*initiator.Conn, error) {
	nc, err := r.from(addr)
	if err != nil {
		return nil, err
	}
	c := initiator.NewConn(nc)
	c.Timeout = patience
	r.t.Cleanup(func() { c.Close() })
	if err := c.Login(o); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// nth are the options of one of many initiators.
func nth(n int) initiator.Options {
	return initiator.Options{Target: testTarget, Initiator: fmt.Sprintf("iqn.2026-11.test:host%d", n)}
}

// crowd opens sessions from an address until one is refused, and returns how many.
func (r *rig) crowd(addr string, most int, o func(int) initiator.Options) (n int) {
	r.t.Helper()
	for n < most {
		if _, err := r.loginFrom(addr, o(n)); err != nil {
			if status := (*initiator.LoginFailure)(nil); !errors.As(err, &status) || status.Class != 3 || status.Detail != 2 {
				r.t.Fatalf("session %d of %s: %v, expected out of resources", n, addr, err)
			}
			return n
		}
		n++
	}
	return n
}

const (
	stranger = "127.0.0.66"
	host     = "127.0.0.2"
)

// TestFloodOfConnections: a stranger who connects and never logs in has no place that
// another address needs, however many it tries.
func TestFloodOfConnections(t *testing.T) {
	counts := &refusals.Counters{}
	r := newRig(t, rigOptions{config: target.Config{Refusals: counts, Limits: target.Limits{LoginConnections: 16, LoginTimeout: time.Minute}}})
	for round := range 10 {
		for range 32 {
			c, err := r.from(stranger)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
		}
		if round == 0 {
			eventually.Holds(t, "all places are taken", func() bool { return r.server.Holding().Logins == 16 })
		}
		c, err := r.loginFrom(host, nth(round))
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if _, err := c.Command(make([]byte, 6), 0, nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	if counts.Of(refusals.LoginDisplaced) == 0 {
		t.Error("nobody lost a place")
	}
}

// TestFloodOfSessions: one address without authentication may have all sessions, but
// those beyond its share go to whoever comes, and all but the share of another user
// to those who authenticate.
func TestFloodOfSessions(t *testing.T) {
	counts := &refusals.Counters{}
	open := login.Auth{AllowNone: true, Incoming: []login.Credential{{User: "alice", Secret: login.NewSecret("initiator-secret-1")}}}
	r := newRig(t, rigOptions{
		config: target.Config{Refusals: counts, Limits: target.Limits{Sessions: 16}},
		rules: func(lus []*scsi.LogicalUnit) []target.AccessRule {
			return []target.AccessRule{{Auth: open, LUNs: []target.LUNMapping{{LUN: 0, LU: lus[0]}}}}
		},
	})
	if n := r.crowd(stranger, 20, nth); n != 16 {
		t.Errorf("a stranger alone got %d sessions, expected all 16", n)
	}
	if n := r.crowd("127.0.1.2", 20, func(n int) initiator.Options { return nth(100 + n) }); n != 8 {
		t.Errorf("a host of another network got %d sessions beside it, expected 8", n)
	}
	alice := func(n int) initiator.Options {
		o := nth(200 + n)
		o.CHAP = &initiator.CHAP{User: "alice", Secret: []byte("initiator-secret-1")}
		return o
	}
	if n := r.crowd("127.0.2.2", 20, alice); n != 8 {
		t.Errorf("a user who has authenticated got %d sessions, expected 8", n)
	}
	eventually.Holds(t, "those who lost their places have gone", func() bool { return r.server.Holding().Sessions == 16 })
	if n := counts.Of(refusals.SessionDisplaced); n != 16 {
		t.Errorf("%d sessions lost their places, expected 16", n)
	}
	if counts.Of(refusals.SessionPlaces) != 3 {
		t.Errorf("%d logins were refused, expected 3", counts.Of(refusals.SessionPlaces))
	}
}

// TestFloodOfDiscovery: discovery sessions of a stranger make room for others'.
func TestFloodOfDiscovery(t *testing.T) {
	r := newRig(t, rigOptions{config: target.Config{Limits: target.Limits{LoginConnections: 8, Sessions: 4}}})
	discovery := func(n int) initiator.Options {
		o := nth(n)
		o.Target = ""
		return o
	}
	for n := range 30 {
		if _, err := r.loginFrom(stranger, discovery(n)); err != nil {
			t.Fatal(err) // it displaces its own
		}
	}
	for n := range 4 {
		if _, err := r.loginFrom(host, discovery(100+n)); err != nil {
			t.Fatal(err)
		}
		if _, err := r.loginFrom(host, nth(n)); err != nil {
			t.Fatalf("a normal session beside them: %v", err)
		}
	}
}

// TestPlacesAreKept: after a restart a stranger gets what is left beside those who
// had sessions before, who all come back while it tries.
func TestPlacesAreKept(t *testing.T) {
	const all = 40
	guests := map[places.Guest]int{}
	for n := range all {
		guests[places.Guest{Name: nth(n).Initiator, Host: netip.MustParseAddr(host)}] = 1
	}
	r := newRig(t, rigOptions{config: target.Config{Guests: guests, Limits: target.Limits{Sessions: all + 2, LoginConnections: 4}}})
	claims := func(n int) initiator.Options {
		o := nth(n)
		o.ISID = [6]byte{0x80, 9}
		return o
	}
	if n := r.crowd(stranger, all, claims); n != 2 {
		t.Errorf("a stranger who knows their names got %d places, expected 2", n)
	}
	stop := r.flood(stranger)
	var storm sync.WaitGroup
	for n := range all {
		storm.Go(func() {
			if _, err := r.loginFrom(host, nth(n)); err != nil {
				t.Errorf("host %d: %v", n, err)
			}
		})
	}
	storm.Wait()
	stop()
	if left := r.server.Guests(); len(left) != all+2 {
		t.Errorf("%d initiators would be remembered, expected %d", len(left), all+2)
	}
}

// TestReinstatedKeepsItsPlace: who logs in again does not lose its place to a crowd
// that tries all the time, when its old session has ended and the new one is not
// there yet.
func TestReinstatedKeepsItsPlace(t *testing.T) {
	r := newRig(t, rigOptions{config: target.Config{Limits: target.Limits{Sessions: 4}}})
	if _, err := r.loginFrom(host, nth(0)); err != nil {
		t.Fatal(err)
	}
	r.crowd(stranger, 8, func(n int) initiator.Options { return nth(1 + n) })
	ctx, cancel := context.WithCancel(context.Background())
	var crowd sync.WaitGroup
	for n := range 8 {
		crowd.Go(func() {
			for ctx.Err() == nil {
				if _, err := r.loginFrom(stranger, nth(90+n)); err == nil {
					t.Error("a stranger found room")
					return
				}
			}
		})
	}
	for range 100 {
		if _, err := r.loginFrom(host, nth(0)); err != nil {
			t.Error(err)
			break
		}
	}
	cancel()
	crowd.Wait()
}

// flood connects from an address again and again, and says nothing, until stop.
func (r *rig) flood(addr string) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			var open []net.Conn
			for ctx.Err() == nil {
				c, err := r.from(addr)
				if err != nil {
					continue
				}
				if open = append(open, c); len(open) > 64 {
					open[0].Close()
					open = open[1:]
				}
			}
			for _, c := range open {
				c.Close()
			}
		})
	}
	return func() { cancel(); running.Wait() }
}

// TestAttemptsOfAStranger: logins of a stranger wait once there were many, although they
// succeed, and those of others and of known hosts do not.
func TestAttemptsOfAStranger(t *testing.T) {
	r := newRig(t, rigOptions{config: target.Config{Limits: target.Limits{Known: []netip.Prefix{netip.MustParsePrefix("127.0.2.0/24")}}}})
	waits := func(addr string) time.Duration { return r.server.AttemptWaits(netip.MustParseAddr(addr)) }
	for range 1000 {
		waits(stranger)
		waits("127.0.2.2")
	}
	if d := waits(stranger); d == 0 {
		t.Error("the stranger does not wait")
	}
	if d := waits(host); d != 0 {
		t.Errorf("another host waits for %v", d)
	}
	if d := waits("127.0.2.2"); d != 0 {
		t.Errorf("a known host waits for %v", d)
	}
}
