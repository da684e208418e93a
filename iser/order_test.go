package iser_test

import (
	"io"
	"testing"

	"lunar/internal/eventually"
	"lunar/internal/initiator"
	"lunar/iser/isertest"
	"lunar/iser/verbs"
)

// Events of the connection manager and of the device at each stage of a connection,
// whether or not they have a place there: those that tell of an end end it, once
// and with nothing left, and the others change nothing.
func TestEventsInAnyOrder(t *testing.T) {
	w := newWorld(t, options{})
	cm := func(e verbs.EventType) func() { return func() { w.server.Device(0).Event(e) } }
	async := func(e verbs.AsyncType) func() { return func() { w.server.Device(0).Async(e) } }
	const unheardOf = 77
	for _, event := range []struct {
		name string
		come func()
		ends bool
	}{
		{"disconnected", cm(verbs.EventDisconnected), true},
		{"disconnected twice", func() { cm(verbs.EventDisconnected)(); cm(verbs.EventDisconnected)() }, true},
		{"connect error", cm(verbs.EventConnectError), true},
		{"unreachable", cm(verbs.EventUnreachable), true},
		{"rejected", cm(verbs.EventRejected), true},
		{"rejected, then disconnected", func() { cm(verbs.EventRejected)(); cm(verbs.EventDisconnected)() }, true},
		{"established once more", cm(verbs.EventEstablished), false},
		{"address change", cm(verbs.EventAddressChange), false},
		{"end of the time wait", cm(verbs.EventTimewaitExit), false},
		{"what nobody knows", cm(unheardOf), false},
		{"communication established once more", async(verbs.AsyncCommEst), false},
		{"queue pair failed", async(verbs.AsyncQPFatal), true},
		{"wrong request", async(verbs.AsyncQPRequest), true},
		{"wrong key, then disconnected", func() { async(verbs.AsyncQPAccess)(); cm(verbs.EventDisconnected)() }, true},
	} {
		for _, stage := range stages {
			t.Run(event.name+", "+stage.name, func(t *testing.T) {
				wire, err := isertest.Dial(w.client, isertest.Options{Portal: portalAddr, Invalidate: true})
				if err != nil {
					t.Fatal(err)
				}
				defer wire.Close()
				c := stage.enter(t, wire)
				event.come()
				if event.ends {
					if n, err := io.Copy(io.Discard, wire); n > 0 || err != nil {
						t.Errorf("found %d bytes, %v; expected the end", n, err)
					}
				} else {
					stage.finish(t, wire, c)
				}
				wire.Close()
				eventually.Finds(t, "connections", 0, w.connections)
			})
		}
	}
	c, _ := w.ready(t, 1, isertest.Options{})
	write(t, c, 0, pattern(64<<10, 1))
}

// stages of a connection, each reached in a fixed order of messages.
var stages = []struct {
	name   string
	enter  func(*testing.T, *isertest.Wire) *initiator.Conn
	finish func(*testing.T, *isertest.Wire, *initiator.Conn)
}{
	{"before the login", func(*testing.T, *isertest.Wire) *initiator.Conn { return nil }, func(t *testing.T, wire *isertest.Wire, _ *initiator.Conn) {
		loggedIn(t, wire)
	}},
	{"in the login", func(t *testing.T, wire *isertest.Wire) *initiator.Conn {
		halfLoggedIn(t, wire, "InitiatorName=iqn.2026-11.test:half\x00SessionType=Normal\x00TargetName="+testTarget+"\x00AuthMethod=None\x00")
		return nil
	}, func(t *testing.T, wire *isertest.Wire, _ *initiator.Conn) {
		halfLoggedIn(t, wire, "")
	}},
	{"in full feature phase", loggedIn, func(t *testing.T, _ *isertest.Wire, c *initiator.Conn) {
		write(t, c, 0, pattern(64<<10, 1))
		expect(t, c, 0, pattern(64<<10, 1))
	}},
}

func loggedIn(t *testing.T, wire *isertest.Wire) *initiator.Conn {
	t.Helper()
	c := initiator.NewConn(wire)
	if err := c.Login(initiator.Options{ISID: isid(7), Target: testTarget}); err != nil {
		t.Fatal(err)
	}
	if err := c.Ready(0); err != nil {
		t.Fatal(err)
	}
	return c
}

// halfLoggedIn exchanges a login request that stays in its stage.
func halfLoggedIn(t *testing.T, wire *isertest.Wire, text string) {
	t.Helper()
	p := make([]byte, 48, 48+len(text)+3)
	p[0], p[7], p[8] = 0x43, byte(len(text)), 0x80
	p = append(p, text...)
	if _, err := wire.Write(append(p, make([]byte, -len(text)&3)...)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(wire, p[:48]); err != nil {
		t.Fatal(err)
	}
	if p[0] != 0x23 || p[1]&0x80 != 0 || p[36] != 0 {
		t.Fatalf("found % x, expected a Login Response of the same stage", p[:48])
	}
	n := (int(p[6])<<8 | int(p[7]) + 3) &^ 3
	if _, err := io.ReadFull(wire, make([]byte, n)); err != nil {
		t.Fatal(err)
	}
}
