package target_test

import (
	"errors"
	"net"
	"testing"

	"lunar/internal/initiator"
	"lunar/target"
	"lunar/target/pdu"
)

// stepped is a connection on which something happens before the n-th request leaves.
type stepped struct {
	net.Conn
	left   int
	before func()
}

func (c *stepped) Write(b []byte) (int, error) {
	if c.left--; c.left == 0 {
		c.before()
	}
	return c.Conn.Write(b)
}

// dialStepped connects to an address; before runs between the two requests of a
// usual login.
func dialStepped(t *testing.T, addr string, before func()) *stepped {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &stepped{conn, 2, before}
}

// portals makes these the portals of group 1.
func (r *rig) portals(listen ...string) {
	r.t.Helper()
	change, err := r.server.PreparePortals([]target.PortalGroup{{Tag: 1, Portals: portals(r.t, r.server, listen...)}})
	if err != nil {
		r.t.Fatal(err)
	}
	change.Commit()
}

// TestPortalGoesDuringLogin: a login by a portal that is closed meanwhile is told to
// try again, for the change has not seen its session; one whose portal stays, or gives
// way to another one at the same address, is served.
func TestPortalGoesDuringLogin(t *testing.T) {
	again := func(t *testing.T, err error) {
		t.Helper()
		var f *initiator.LoginFailure
		if !errors.As(err, &f) || int(f.Class)<<8|int(f.Detail) != int(pdu.LoginServiceUnavailable) {
			t.Errorf("found %v, expected that the login is to be tried again", err)
		}
	}
	for _, test := range []struct {
		name  string
		after []string // what the group listens on then; its portal is 127.0.0.1:0
		gone  bool

		everywhere bool // it listens on all addresses of its port then
	}{
		{name: "stays", after: []string{"127.0.0.1:0", "127.0.0.2:0"}},
		{name: "goes", after: []string{"127.0.0.2:0"}, gone: true},
		{name: "gives way", everywhere: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			listen := ""
			if test.everywhere {
				var port string
				listen, port = loopback(t)
				test.after = []string{":" + port}
			}
			r := newRig(t, rigOptions{listen: listen, config: target.Config{Limits: target.Limits{MaxConnections: 2}}})
			c := initiator.NewConn(dialStepped(t, r.addr, func() { r.portals(test.after...) }))
			err := c.Login(initiator.Options{Target: testTarget})
			if test.gone {
				again(t, err)
				if n := r.server.Holding().Sessions; n != 0 {
					t.Errorf("%d sessions are left", n)
				}
			} else if err != nil {
				t.Errorf("found %v, expected a session", err)
			}
		})
	}
	t.Run("a second connection", func(t *testing.T) {
		r := newRig(t, rigOptions{config: target.Config{Limits: target.Limits{MaxConnections: 2}}})
		r.portals("127.0.0.1:0", "127.0.0.2:0")
		first := r.login(initiator.Options{Keys: initiator.Keys{{Name: "MaxConnections", Value: "2"}}})
		second := r.server.Addrs(1)[1].String()
		_, err := first.JoinOver(dialStepped(t, second, func() { r.portals("127.0.0.1:0") }), initiator.Options{Target: testTarget, CID: 1})
		again(t, err)
		if got := testUnitReady(t, first, 0); got != [2]byte{} {
			t.Errorf("found sense %x of the connection that stays", got)
		}
	})
}
