package target_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"lunar/backstore"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
)

// The stories of this file are about the login phase and about sessions.

func garbage(f *field) {
	for _, b := range [][]byte{
		[]byte("GET / HTTP/1.1\r\nHost: lunar\r\n\r\n----------------------------"),
		bytes.Repeat([]byte{0xff}, 100), make([]byte, 100), bytes.Repeat([]byte{0x43}, 48),
	} {
		c := f.raw()
		c.Write(b)
		f.expectEnd(c)
	}
}

// loginPDU is the first login request of an initiator, without padding.
func loginPDU(text string) []byte {
	b := make([]byte, 48, 48+len(text))
	b[0], b[1] = 0x43, 0x87
	b[6], b[7] = byte(len(text)>>8), byte(len(text))
	b[8], b[13] = 0x80, 9
	binary.BigEndian.PutUint32(b[24:], 1)
	return append(b, text...)
}

const loginText = "InitiatorName=iqn.2026-01.lunar:evil\x00TargetName=" + testTarget + "\x00SessionType=Normal\x00AuthMethod=None\x00"

func wrongLogins(f *field) {
	good := loginPDU(loginText)
	for _, n := range []int{0, 1, 47, 48, len(loginText) - 1, len(loginText) + 1, 8192, 8193, 1<<24 - 1} {
		for _, ahs := range []byte{0, 1, 255} {
			b := bytes.Clone(good)
			b[4], b[5], b[6], b[7] = ahs, byte(n>>16), byte(n>>8), byte(n)
			c := f.raw()
			c.Write(b)
			c.CloseWrite()
			f.expectEnd(c)
			c.Close()
		}
	}
}

func halfLogins(f *field) {
	good := loginPDU(loginText)
	for _, n := range []int{0, 1, 20, 48, 60, len(good) - 1} {
		c := f.raw()
		c.Write(good[:n])
		defer f.expectEnd(c) // all run into the time limit together
	}
}

func halfOpen(f *field) {
	var open []*net.TCPConn
	for range 120 {
		open = append(open, f.raw())
	}
	for _, c := range open[:100] { // the oldest make room
		f.expectEnd(c)
		c.Close()
	}
	if h := f.rig.server.Holding(); h.Logins > fieldLimits.LoginConnections {
		f.Errorf("%d connections in login, the limit is %d", h.Logins, fieldLimits.LoginConnections)
	}
}

func trickledLogin(f *field) {
	c := f.raw()
	begin := time.Now()
	trickle(c, loginPDU(loginText), 20*time.Millisecond)
	f.expectEnd(c)
	if took := time.Since(begin); took > 20*fieldLimits.LoginTimeout {
		f.Errorf("a login was let go on for %v, the limit is %v", took, fieldLimits.LoginTimeout)
	}
}

// endlessLogin continues a login text beyond what anybody needs.
func endlessLogin(f *field) {
	c := f.raw()
	more := loginPDU(string(bytes.Repeat([]byte("X-a=b\x00"), 1000)))
	more[1] = 0x40
	go io.Copy(io.Discard, c)
	sent := 0
	deadline(c, patience)
	for ; sent < 1<<20; sent += len(more) {
		if _, err := c.Write(more); err != nil {
			return
		}
	}
	eventually.Holds(f, fmt.Sprintf("no more than %d bytes of login text are taken", sent), func() bool {
		_, err := c.Write(more)
		return err != nil
	})
}

// crowdedReinstatement has many logins wait for one session whose write does
// not end.
func crowdedReinstatement(f *field) {
	f.hold(backstore.Write)
	o := initiator.Options{ISID: [6]byte{0x80, 2}}
	c := f.enemy(o)
	f.send(c, write(c, 0, make([]byte, 4096)))
	if !f.answers(c) {
		f.Fatal("the session ended")
	}
	o.Target = testTarget
	var crowd sync.WaitGroup
	for range 2 * fieldLimits.LoginConnections {
		crowd.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			if c, err := initiator.Dial(ctx, f.rig.addr, o); err == nil {
				c.Close()
			}
		})
	}
	eventually.Holds(f, "logins wait for the session", func() bool { return f.rig.server.Holding().Logins > 0 })
	f.letGo()
	crowd.Wait()
}

func reinstatementStorm(f *field) {
	var storm sync.WaitGroup
	for range 6 {
		storm.Go(func() {
			for range 8 {
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				c, err := initiator.Dial(ctx, f.rig.addr, initiator.Options{Target: testTarget, ISID: [6]byte{0x80, 5}})
				cancel()
				if err == nil {
					c.Send(command(c, cdbRead16(0, 512), 0xc1, 256<<10, nil))
					c.Close()
				}
			}
		})
	}
	storm.Wait()
}

func strangeTSIH(f *field) {
	for tsih := uint16(1); tsih < 40; tsih++ {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		_, err := initiator.Dial(ctx, f.rig.addr, initiator.Options{Target: testTarget, ISID: [6]byte{0x80, 4}, TSIH: tsih})
		cancel()
		var refused *initiator.LoginFailure
		if !errors.As(err, &refused) {
			f.Errorf("TSIH %d: %v, expected a refusal", tsih, err)
		}
	}
}

func manySessions(f *field) {
	var all []*initiator.Conn
	for range fieldLimits.Sessions - 1 {
		all = append(all, f.enemy(initiator.Options{}))
		for _, c := range all { // or who is silent for long is thrown out
			if err := c.Ping(nil); err != nil {
				f.Fatal(err)
			}
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := initiator.Dial(ctx, f.rig.addr, initiator.Options{Target: testTarget, ISID: [6]byte{0x80, 3}})
	var refused *initiator.LoginFailure
	if !errors.As(err, &refused) || refused.Class != 3 || refused.Detail != 2 {
		f.Errorf("%v, expected out of resources", err)
	}
}

func manyDiscoveries(f *field) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for range fieldLimits.Sessions {
		c, err := initiator.Dial(ctx, f.rig.addr, initiator.Options{})
		if err == nil {
			f.enemies = append(f.enemies, c)
		}
	}
	f.enemy(initiator.Options{})
}
