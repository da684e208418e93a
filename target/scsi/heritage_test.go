package scsi

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"lunar/target/scsi/mode"
	"lunar/target/scsi/reservation"
	"lunar/target/scsi/sense"
)

// estate is what servers of a unit have in common: what was saved last. It fails with err, or
// before it answers calls during.
type estate struct {
	sync.Mutex
	text   []byte
	saves  int
	err    error
	during func()
}

func (e *estate) save(h *Heritage) error {
	text, err := h.Encode()
	if err != nil {
		return err
	}
	e.Lock()
	defer e.Unlock()
	if e.during != nil {
		e.during()
	}
	if e.err == nil {
		e.text = text
		e.saves++
	}
	return e.err
}

func (e *estate) left(t *testing.T) *Heritage {
	t.Helper()
	e.Lock()
	defer e.Unlock()
	if e.text == nil {
		return nil
	}
	h, err := ParseHeritage(e.text)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// server is one of those that present a unit, with two nexuses, which all of them have.
func (e *estate) server(t *testing.T) (*disk, []*Nexus) {
	return members(t, 2, LUConfig{Shared: true, SaveHeritage: e.save})
}

func (d *disk) succeed(left *Heritage) *disk {
	d.lu.Succeed(left)
	d.lu.Settle(here, nil)
	for n := range d.lu.mu.nexuses {
		n.clearAttention(sense.ASCAsymmetricAccessStateChanged)
	}
	return d
}

// TestSuccession: what initiators have said at one server another one goes on with, and what
// they have not been told.
func TestSuccession(t *testing.T) {
	e := &estate{}
	first, n := e.server(t)
	first.succeed(nil)
	a, b := n[0], n[1]
	first.expect("register a", first.out(a, reservation.Register, 0, 0, 0xa), Good, nil)
	first.expect("register b", first.out(b, reservation.Register, 0, 0, 0xb), Good, nil)
	first.expect("reserve", first.out(a, reservation.Reserve, reservation.WriteExclusiveRegistrantsOnly, 0xa, 0), Good, nil)
	text := []byte("text\x00")
	first.expect("identify", first.runAs(a, []byte{0xa4, 0x06, 0, 0, 0, 0, 0, 0, 0, byte(len(text)), identifyingText << 1, 0}, text), Good, nil)
	first.selectDescriptorSense(a)
	first.expect("preempt", first.out(a, reservation.Preempt, reservation.WriteExclusiveRegistrantsOnly, 0xa, 0xb), Good, nil)
	first.lu.Resign()
	first.expect("what it was", first.runAs(a, []byte{0x5e, 0, 0, 0, 0, 0, 0, 0, 255, 0}, nil), CheckCondition, sense.InStandby)

	second, n := e.server(t)
	second.succeed(e.left(t))
	a, b = n[0], n[1]
	second.expect("b is told", second.runAs(b, testReady, nil), CheckCondition, attention(sense.ASCRegistrationsPreempted))
	second.expect("once", second.runAs(b, testReady, nil), Good, nil)
	second.expect("b is fenced", second.runAs(b, writeNone, nil), ReservationConflict, nil)
	second.expect("a is not", second.runAs(a, writeNone, nil), Good, nil)
	equal(t, second.in(a, 0), "00000003 00000008  000000000000000a")
	equal(t, second.in(a, 1), "00000003 00000010  000000000000000a 00000000 00 05 0000")
	if got := second.runAs(a, []byte{0xa3, 0x05, 0, 0, 0, 0, 0, 0, 0, 64, identifyingText << 1, 0}, nil); string(got.data[4:]) != string(text) {
		t.Errorf("found identifying information %q", got.data)
	}
	if !second.lu.State().DescriptorSense {
		t.Error("what MODE SELECT has set is lost")
	}
}

// selectDescriptorSense sets D_SENSE of the control mode page.
func (d *disk) selectDescriptorSense(n *Nexus) {
	d.t.Helper()
	page := d.runAs(n, []byte{0x1a, 0x08, 0x0a, 0, 255, 0}, nil).data
	list := slices.Clone(page)
	list[0], list[2] = 0, 0
	list[4] &^= 0x80
	list[4+2] |= 0x04
	d.expect("MODE SELECT", d.runAs(n, []byte{0x15, 0x10, 0, 0, byte(len(list)), 0}, list), Good, nil)
}

// TestReserveSucceeds: RESERVE of SPC-2 has a successor, too; its end by a reset reaches it.
func TestReserveSucceeds(t *testing.T) {
	e := &estate{}
	first, n := e.server(t)
	first.succeed(nil)
	first.expect("RESERVE", first.runAs(n[0], []byte{0x16, 0, 0, 0, 0, 0}, nil), Good, nil)
	second, m := e.server(t)
	second.succeed(e.left(t))
	second.expect("of another", second.runAs(m[1], writeNone, nil), ReservationConflict, nil)
	second.expect("of the holder", second.runAs(m[0], writeNone, nil), Good, nil)
	second.lu.ResetState()
	done := make(chan struct{})
	second.lu.registrar.do(func() { close(done) })
	<-done
	if h := e.left(t); h.Reserved != (reservation.Nexus{}) {
		t.Errorf("found %v after a reset", h.Reserved)
	}
}

// TestUnsaved: what cannot be saved has not happened, and initiators are told so that they
// come again, or ask another server.
func TestUnsaved(t *testing.T) {
	for _, c := range []struct {
		err    error
		status Status
		sense  *sense.Data
	}{
		{fmt.Errorf("etcd: %w", ErrBusy), Busy, nil},
		{fmt.Errorf("etcd: %w", ErrElsewhere), CheckCondition, sense.InTransition},
		{fmt.Errorf("etcd: %w", ErrTooLarge), CheckCondition, sense.InsufficientRegistrationResources},
		{errors.New("disk full"), CheckCondition, sense.InternalTargetFailure},
	} {
		e := &estate{}
		d, n := e.server(t)
		d.succeed(nil)
		d.expect("register", d.out(n[0], reservation.Register, 0, 0, 1), Good, nil)
		e.err = c.err
		list := []byte("x\x00")
		d.expect("register", d.out(n[1], reservation.Register, 0, 0, 2), c.status, c.sense)
		d.expect("reserve", d.out(n[0], reservation.Reserve, reservation.WriteExclusive, 1, 0), c.status, c.sense)
		d.expect("identify", d.runAs(n[0], []byte{0xa4, 0x06, 0, 0, 0, 0, 0, 0, 0, 2, identifyingText << 1, 0}, list), c.status, c.sense)
		if _, _, err := d.lu.ClearReservations(); !errors.Is(err, c.err) {
			t.Errorf("found %v when an administrator clears, expected %v", err, c.err)
		}
		equal(t, d.in(n[0], 0), "00000001 00000008  0000000000000001")
		equal(t, d.in(n[0], 1), "00000001 00000000")
		if info := d.lu.identifying.Load(); len(info.Text) != 0 {
			t.Errorf("found identifying information %q", info.Text)
		}
	}
	e := &estate{err: ErrBusy}
	d, n := e.server(t)
	d.succeed(nil)
	d.expect("RESERVE", d.runAs(n[0], []byte{0x16, 0, 0, 0, 0, 0}, nil), Busy, nil)
	d.expect("write of another", d.runAs(n[1], writeNone, nil), Good, nil)
}

// TestChangeOfServersWhileSaving: what was saved as the unit went to another server is that
// one's to tell, and not put into force here.
func TestChangeOfServersWhileSaving(t *testing.T) {
	e := &estate{}
	d, n := e.server(t)
	d.succeed(nil)
	e.during = d.lu.Resign
	d.expect("register", d.out(n[0], reservation.Register, 0, 0, 1), CheckCondition, sense.InTransition)
	e.during = nil
	if s, _ := d.lu.Reservations(); len(s.Registrations()) != 0 {
		t.Errorf("found registrations %v where the unit is not served", s.Registrations())
	}
	d.succeed(e.left(t))
	equal(t, d.in(n[0], 0), "00000001 00000008  0000000000000001")
}

// TestRepeated: who was not told that his request was saved, since another server serves the unit now,
// and sends it again, is told so, once. Who sends something else is not.
func TestRepeated(t *testing.T) {
	e := &estate{}
	d, n := e.server(t)
	d.succeed(nil)
	d.out(n[1], reservation.Register, 0, 0, 0xb)
	e.during = d.lu.Resign
	d.expect("nobody is told", d.out(n[0], reservation.Register, 0, 0, 0xa), CheckCondition, sense.InTransition)
	e.during = nil
	d.succeed(e.left(t))
	saves := e.saves
	d.expect("of another", d.out(n[1], reservation.Register, 0, 0, 0xa), ReservationConflict, nil)
	d.expect("the same again", d.out(n[0], reservation.Register, 0, 0, 0xa), Good, nil)
	d.expect("and again", d.out(n[0], reservation.Register, 0, 0, 0xa), ReservationConflict, nil)
	if e.saves != saves {
		t.Errorf("found %d changes saved", e.saves-saves)
	}
	equal(t, d.in(n[0], 0), "00000002 00000010  000000000000000b 000000000000000a")

	e = &estate{}
	d, n = e.server(t)
	d.succeed(nil)
	d.out(n[0], reservation.Register, 0, 0, 0xa)
	d.lu.Doubt(n[1])
	d.expect("of whom is not in doubt", d.out(n[0], reservation.Register, 0, 0, 0xa), ReservationConflict, nil)
	d.lu.Doubt(n[0])
	d.expect("of whom is", d.out(n[0], reservation.Register, 0, 0, 0xa), Good, nil)
	d.out(n[1], reservation.Register, 0, 0, 0xb)
	d.lu.Doubt(n[0])
	d.expect("when something has changed since", d.out(n[0], reservation.Register, 0, 0, 0xa), ReservationConflict, nil)
	d.expect("preempt", d.out(n[0], reservation.PreemptAndAbort, 0, 0xa, 0xb), Good, nil)
	d.lu.Doubt(n[0])
	d.expect("what ends tasks", d.out(n[0], reservation.PreemptAndAbort, 0, 0xa, 0xb), ReservationConflict, nil)
}

// TestOwedUntilTold: unit attentions of reservations are kept until some time after they were
// reported, of nexuses that come later, too.
func TestOwedUntilTold(t *testing.T) {
	e := &estate{}
	d, n := e.server(t)
	d.succeed(nil)
	absent := reservation.Nexus{Initiator: reservation.PortName("iqn.h9", 1), Target: "iqn.t", Port: 1}
	d.out(n[0], reservation.Register, 0, 0, 1)
	d.out(n[1], reservation.Register, 0, 0, 2)
	late := d.member("iqn.h9", 1)
	d.out(late, reservation.Register, 0, 0, 2)
	d.lu.Detach(late)
	d.expect("preempt", d.out(n[0], reservation.Preempt, 0, 1, 2), Good, nil)
	owes := func(want ...reservation.Nexus) {
		t.Helper()
		var got []reservation.Nexus
		for _, o := range e.left(t).Owed {
			got = append(got, o.Nexus)
		}
		if !slices.Equal(got, want) {
			t.Errorf("found %v, expected %v", got, want)
		}
	}
	owes(n[1].Identity(), absent)
	d.lu.forgetTold()
	d.lu.forgetTold()
	owes(n[1].Identity(), absent)
	d.expect("told", d.runAs(n[1], testReady, nil), CheckCondition, attention(sense.ASCRegistrationsPreempted))
	if d.lu.mu.Lock(); !d.lu.mu.forgetting {
		t.Error("what was told is never forgotten")
	}
	d.lu.mu.Unlock()
	d.lu.forgetTold()
	owes(n[1].Identity(), absent)
	d.lu.forgetTold()
	owes(absent)
	again := d.member("iqn.h9", 1)
	if !again.has(sense.ASCRegistrationsPreempted) {
		t.Error("a nexus that came later is not told")
	}
	d.lu.Detach(again)
	d.out(n[0], reservation.Register, 0, 1, 3)
	owes()
}

// TestRegistrarIsStuck: while something is being saved for long, initiators are asked to come
// again.
func TestRegistrarIsStuck(t *testing.T) {
	e := &estate{}
	d, n := e.server(t)
	d.succeed(nil)
	d.lu.registrar.mu.running = true // since the beginning of time
	d.expect("register", d.out(n[0], reservation.Register, 0, 0, 1), Busy, nil)
	d.expect("read keys", d.runAs(n[0], []byte{0x5e, 0, 0, 0, 0, 0, 0, 0, 255, 0}, nil), Good, nil)
	d.lu.registrar.mu.running = false
	d.expect("register", d.out(n[0], reservation.Register, 0, 0, 1), Good, nil)
}

// TestReservationsHeld: reservations wait until it is decided who serves.
func TestReservationsHeld(t *testing.T) {
	m := newMedium(mib)
	e := &estate{}
	n := newUnit(t, m, LUConfig{Shared: true, SaveHeritage: e.save})
	th, lu := newThread(t, m, 1), n.LU
	lu.Hold(longHold)
	list := keys(0, 1, 0)
	x := th.start(n, outCDB(reservation.Register, 0, list), list, 0)
	for th.turn() {
	}
	if x.ends != 0 || !x.c.Held() {
		t.Fatal("PERSISTENT RESERVE OUT has not waited")
	}
	lu.Succeed(nil)
	lu.Settle(nil, nil)
	if x.finish(); x.c.Status != Good {
		t.Errorf("found status %#x", x.c.Status)
	}
	lu.Resign()
	lu.Hold(longHold)
	x = th.start(n, outCDB(reservation.Register, 0, list), list, 0)
	lu.Settle(there, nil)
	n.takeAttention()
	if x.finish(); senseCode(x) != inStandby {
		t.Errorf("found sense %x where another server serves", senseCode(x))
	}
}

// TestHeritageText: what is encoded is parsed, and what no server has written is refused.
func TestHeritageText(t *testing.T) {
	nexus := reservation.Nexus{Initiator: reservation.PortName("iqn.a", 1), Target: "iqn.t", Port: 7}
	change, _ := new(reservation.State).Apply(&reservation.Request{From: nexus, ServiceKey: 5})
	h := &Heritage{
		Reservations: change.Next, Reserved: nexus, Owed: []Owed{{nexus, sense.ASCReservationsReleased}},
		Identifying: Identifying{Device: []byte{0, 255}}, Modes: &mode.Values{SoftProtect: true}, Sanitizing: &SanitizeNote{Exit: true},
	}
	text, err := h.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ParseHeritage(text); err != nil || !reflect.DeepEqual(got, h) {
		t.Errorf("found %+v, %v in %s", got, err, text)
	}
	for _, wrong := range []string{
		``, `{}`, strings.Replace(string(text), `{"version":1`, `{"version":2`, 1), strings.Replace(string(text), `"identifying"`, `"more":1,"identifying"`, 1),
		strings.Replace(string(text), `"key":"5"`, `"key":"0"`, 1),
	} {
		if got, err := ParseHeritage([]byte(wrong)); err == nil {
			t.Errorf("%s: found %+v", wrong, got)
		}
	}
}

// FuzzHeritage: whatever is taken can be stored again as it is.
func FuzzHeritage(f *testing.F) {
	f.Add([]byte(`{"version":1,"reservations":{"version":2,"generation":3,"type":7,"registrations":[{"initiator":"a","target":"t","port":1,"key":"5"}]},"owed":[{"initiator":"a","target":"t","port":1,"asc":10755}],"identifying":{"text":"AA=="},"modes":{"write-cache":true,"soft-protect":false,"descriptor-sense":false,"own-tags":false}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		h, err := ParseHeritage(text)
		if err != nil {
			return
		}
		again, err := h.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if other, err := ParseHeritage(again); err != nil || !reflect.DeepEqual(h.Modes, other.Modes) || len(other.Owed) != len(h.Owed) {
			t.Errorf("%+v, then %+v, %v", h, other, err)
		}
	})
}
