package main

import (
	"context"
	_ "embed"
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"time"

	"lunar/internal/initiator"
	"lunar/scripts/evidence/canary"
)

// Names of the site that is besieged; security.yaml has them too.
const (
	prefix       = "iqn.2026-11.example.lunar:"
	canaryTarget = prefix + "canary"
	readerTarget = prefix + "reader" // the canary's volume, read-only
	openTarget   = prefix + "open"   // without authentication
	mirrorTarget = prefix + "mirror" // its mutual secret is a secret of the canary's group
	canaryName   = "iqn.2026-11.example.host:canary"
	malloryName  = "iqn.2026-11.example.host:mallory"
	strangerName = "iqn.2026-11.example.host:stranger"
)

// Where who comes from: honest initiators share no address with the attacker.
const (
	canaryAddress  = "127.0.0.1"
	honestAddress  = "127.0.0.3"
	malloryAddress = "127.0.0.2"
)

var (
	canaryCHAP  = initiator.CHAP{User: "canary", Secret: []byte("canary-secret-1")}
	malloryCHAP = initiator.CHAP{User: "mallory", Secret: []byte("mallory-secret-1")}
)

// canaryISID is that of the canary's session, which is no secret.
var canaryISID = [6]byte{0x80, 0, 0, 0xca, 0, 1}

// scene is what an attacker knows.
type scene struct {
	Portal  string // of the portal group that initiators use
	Back    string // of the one that they do not
	Metrics string
	Control string            // of the control API over TLS; empty: an older binary has none
	Tokens  map[string]string // by role; "wrong" is nobody's
	Socket  string
	Binary  string
	Config  string
	Scratch string // a directory
	Seed    uint64

	Found map[string]uint64 `json:"-"` // by fuzzing: seeds by signature
}

// newCanary is an initiator with a volume of its own on the server that is attacked.
func (s *scene) newCanary(realTime bool) *canary.Canary {
	return &canary.Canary{Rate: 1500, Depth: 8, RealTime: realTime, Login: func(ctx context.Context) (*initiator.Conn, error) {
		o := as(canaryName, canaryTarget, &canaryCHAP, 0)
		o.ISID = canaryISID
		soon, cancel := context.WithTimeout(ctx, answerTime)
		defer cancel()
		return loginTo(soon, s.Portal, o)
	}}
}

// loginTo is a login whose connection outlives ctx, to a unit that is ready.
func loginTo(ctx context.Context, portal string, o initiator.Options) (*initiator.Conn, error) {
	conn, err := initiator.Dial(ctx, portal, o)
	if err != nil {
		return nil, err
	}
	conn.Timeout = answerTime
	if err := conn.Ready(0); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// answerTime is how long an attacker waits for an answer.
const answerTime = 20 * time.Second

// dialFrom opens a connection that the end of ctx closes.
func dialFrom(ctx context.Context, from, to string) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: answerTime}
	c, err := d.DialContext(ctx, "tcp", to)
	if err == nil {
		context.AfterFunc(ctx, func() { c.Close() })
	}
	return c, err
}

// login opens a session from an address.
func (s *scene) login(ctx context.Context, from string, o initiator.Options) (*initiator.Conn, error) {
	return loginAt(ctx, from, s.Portal, o)
}

func loginAt(ctx context.Context, from, portal string, o initiator.Options) (*initiator.Conn, error) {
	nc, err := dialFrom(ctx, from, portal)
	if err != nil {
		return nil, err
	}
	c := initiator.NewConn(nc)
	c.Timeout = answerTime
	if err := c.Login(o); err != nil {
		nc.Close()
		return nil, err
	}
	return c, nil
}

// ready opens a session from an address to a unit that is ready.
func (s *scene) ready(ctx context.Context, from string, o initiator.Options) (*initiator.Conn, error) {
	return readyAt(ctx, from, s.Portal, o, 0)
}

func readyAt(ctx context.Context, from, portal string, o initiator.Options, lun uint64) (*initiator.Conn, error) {
	c, err := loginAt(ctx, from, portal, o)
	if err != nil {
		return nil, err
	}
	if err := c.Ready(lun); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// manyAddresses spreads over networks of this machine.
func manyAddresses(i int) string { return fmt.Sprintf("127.%d.%d.%d", 1+i%100, 1+i/100%100, 1+i%7) }

// as are the options of a session of somebody.
func as(name, target string, chap *initiator.CHAP, isid uint32) initiator.Options {
	o := initiator.Options{Initiator: name, Target: target, ISID: [6]byte{0x80}, CHAP: chap}
	binary.BigEndian.PutUint32(o.ISID[2:], isid)
	return o
}

// mallory are the options of a tenant who attacks; stranger of somebody without a secret.
func mallory(target string, isid int) initiator.Options {
	return as(malloryName, target, &malloryCHAP, uint32(isid))
}

func stranger(target string, isid int) initiator.Options {
	return as(strangerName, target, nil, uint32(isid))
}

// crowd runs so many at once, each again and again until ctx ends; one that failed
// rests for a moment.
func crowd(ctx context.Context, n int, one func(i int) error) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			for ctx.Err() == nil {
				if one(i) != nil {
					pause(ctx, 20*time.Millisecond)
				}
			}
		})
	}
	all.Wait()
}

// pause waits, and reports whether ctx goes on.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// honest logs in now and then from another address than the attacker's, and counts.
func (s *scene) honest(ctx context.Context, t *tally, o initiator.Options) {
	for i := 0; pause(ctx, 100*time.Millisecond); i++ {
		o.ISID = [6]byte{0x80, 0, 0x70, 0, 0, byte(i)}
		soon, cancel := context.WithTimeout(ctx, 5*time.Second)
		c, err := s.login(soon, honestAddress, o)
		switch {
		case err == nil:
			c.Close()
			t.add(honestIn, 1)
		case ctx.Err() == nil:
			t.add(honestOut, 1)
		}
		cancel()
	}
}

const (
	honestIn  = "honest logins"
	honestOut = "honest logins refused"
)

// good runs a command that has to end well.
func good(c *initiator.Conn, cdb []byte, lun uint64, out []byte, inLen int) ([]byte, error) {
	r, err := c.Command(cdb, lun, out, inLen)
	if err != nil {
		return nil, err
	}
	if r.Response != 0 || r.Status != initiator.StatusGood {
		return nil, fmt.Errorf("command %#02x: status %#02x, sense % x", cdb[0], r.Status, r.Sense)
	}
	return r.In, nil
}

// cdb16 is a command of 16 bytes that has LBA and length in the usual places.
func cdb16(opcode byte, lba, n int) []byte {
	c := make([]byte, 16)
	c[0] = opcode
	binary.BigEndian.PutUint64(c[2:], uint64(lba))
	binary.BigEndian.PutUint32(c[10:], uint32(n))
	return c
}

// designator is the NAA designator of a logical unit (VPD page 83h), which VPD pages of
// other hosts, and multipath's names, tell everybody.
func designator(c *initiator.Conn, lun uint64) ([]byte, error) {
	page, err := good(c, []byte{0x12, 1, 0x83, 1, 0, 0}, lun, nil, 256)
	if err != nil {
		return nil, err
	}
	for d := page[min(4, len(page)):]; len(d) >= 4 && len(d) >= 4+int(d[3]); d = d[4+int(d[3]):] {
		if d[1]&0x3f == 3 {
			return d[4 : 4+int(d[3])], nil
		}
	}
	return nil, fmt.Errorf("no NAA designator in % x", page)
}
