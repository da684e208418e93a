package scsi

import (
	"testing"

	"lunar/target/scsi/reservation"
)

// TestCopiesOfAnotherUser: a list identifier is of who has proven to be behind the
// initiator port, and without a proof of one I_T nexus.
func TestCopiesOfAnotherUser(t *testing.T) {
	for _, c := range []struct {
		name         string
		hers, others *Nexus
		sees         bool
	}{
		{"the same user by another target", &Nexus{Proven: "alice"}, &Nexus{Proven: "alice", Target: "iqn.u"}, true},
		{"another user", &Nexus{Proven: "alice"}, &Nexus{Proven: "bob"}, false},
		{"nothing proven", &Nexus{Proven: "alice"}, &Nexus{}, false},
		{"nothing proven by both, one nexus", &Nexus{}, &Nexus{}, true},
		{"nothing proven by both, another target", &Nexus{}, &Nexus{Target: "iqn.u"}, false},
		{"nothing proven by both, another portal group", &Nexus{}, &Nexus{TargetTag: 2}, false},
	} {
		d := newDisk(t, diskInfo(), LUConfig{})
		for _, n := range []*Nexus{c.hers, c.others} {
			n.LU, n.Initiator = d.lu, "iqn.h,i,0x000000000001"
		}
		r, s := (&Command{Nexus: c.hers}).beginRecord(5, 0)
		if s != nil {
			t.Fatal(s)
		}
		if got := (&Command{Nexus: c.others}).copyRecord(5) == r; got != c.sees {
			t.Errorf("%s: found %v, expected %v", c.name, got, c.sees)
		}
	}
}

// TestDeferredErrorOfAnotherUser: who claims an initiator port hears of a deferred error
// of it, and does not take it from who is behind it.
func TestDeferredErrorOfAnotherUser(t *testing.T) {
	d := newDeferral(t)
	lu := d.a.LU
	attach := func(who any) *Nexus {
		n := &Nexus{LU: lu, Initiator: "h", Proven: who, Map: d.a.Map}
		lu.Attach(n)
		n.takeAttention()
		return n
	}
	hers := attach("alice")
	d.write(hers, 0)
	lu.Detach(hers)
	d.fail()
	his := attach("bob")
	d.expect(his, &deferred5)
	lu.Detach(his)
	d.expect(attach("alice"), &deferred5)
}

// TestRegistrant: it is known who has registered, also when the session has ended, and
// forgotten with the registration. Of registrations of before, who comes first is.
func TestRegistrant(t *testing.T) {
	d, n := members(t, 2, LUConfig{})
	expect := func(when string, of *Nexus, want any) {
		t.Helper()
		if got := d.lu.Registrant(of.Initiator, of.Target); got != want {
			t.Errorf("%s: found %v, expected %v", when, got, want)
		}
	}
	n[0].Proven, n[1].Proven = "alice", "bob"
	expect("nobody is registered", n[0], nil)
	d.expect("REGISTER", d.out(n[0], reservation.Register, 0, 0, 1), Good, nil)
	d.expect("REGISTER", d.out(n[1], reservation.Register, 0, 0, 2), Good, nil)
	d.lu.Detach(n[0])
	expect("she has left", n[0], "alice")
	claim := d.member("iqn.h1", 1)
	expect("somebody claims her port", claim, "alice")
	d.expect("REGISTER with no key", d.out(n[1], reservation.Register, 0, 2, 0), Good, nil)
	expect("he has ended his registration", n[1], nil)

	e, _ := members(t, 0, LUConfig{Reservations: d.lu.reservations.Load()})
	expect = func(when string, of *Nexus, want any) {
		t.Helper()
		if got := e.lu.Registrant(of.Initiator, of.Target); got != want {
			t.Errorf("%s: found %v, expected %v", when, got, want)
		}
	}
	expect("after a start", n[0], nil)
	e.lu.Attach(&Nexus{LU: e.lu, Initiator: n[0].Initiator, Target: n[0].Target, TargetTag: 1, Proven: "alicia"})
	expect("who comes first", n[0], "alicia")
}
