package target_test

import (
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
	"lunar/internal/refusals"
	"lunar/target"
	"lunar/target/login"
	"lunar/target/scsi"
)

// drip sends something now and then, answers pings, and expects that the server has
// enough of that one day.
func (f *field) drip(c *initiator.Conn, why string, send func(i int) error) {
	f.Helper()
	for until, i := time.Now().Add(patience), 0; time.Now().Before(until); i++ {
		if send(i) != nil {
			return
		}
		p, err := c.Step(50 * time.Millisecond)
		if errors.Is(err, initiator.ErrClosed) {
			return
		}
		if err == nil && p != nil && p.Opcode() == initiator.OpNOPIn {
			f.send(c, pong(p))
		}
	}
	f.Errorf("the server goes on with who sends %s", why)
}

// solicited are the keys of a session in which all Data-Out are asked for.
var solicited = initiator.Options{Keys: initiator.Keys{{Name: "ImmediateData", Value: "No"}, {Name: "InitialR2T", Value: "Yes"}}}

// pong answers a NOP-In.
func pong(ping *initiator.PDU) *initiator.PDU {
	p := initiator.NewPDU(initiator.OpNOPOut, initiator.FlagFinal, nil)
	p.SetImmediate()
	p.SetU32(initiator.AtITT, initiator.NoTag)
	p.SetU32(initiator.AtTTT, ping.TTT())
	return p
}

// emptyData answers an R2T with Data-Out PDUs that have no data.
func emptyData(f *field) {
	c := f.enemy(solicited)
	p := f.openWrite(c, 4096)
	f.drip(c, "Data-Out without data", func(i int) error {
		empty := dataOut(p.ITT(), uint32(i), 0, 0, 0)
		empty.SetU32(initiator.AtTTT, p.TTT())
		return c.Send(empty)
	})
}

// trickledData answers an R2T with a few bytes at a time.
func trickledData(f *field) {
	c := f.enemy(solicited)
	p := f.openWrite(c, 4096)
	f.drip(c, "Data-Out of four bytes", func(i int) error {
		few := dataOut(p.ITT(), uint32(i), uint32(4*i), 4, 0)
		few.SetU32(initiator.AtTTT, p.TTT())
		return c.Send(few)
	})
}

// trickledUnasked sends its unasked data a few bytes at a time.
func trickledUnasked(f *field) {
	c := f.enemy(initiator.Options{Keys: initiator.Keys{{Name: "InitialR2T", Value: "No"}}})
	p := command(c, cdbWrite16(0, 8), 0x20, 4096, make([]byte, 8))
	f.send(c, p)
	f.drip(c, "unasked Data-Out of four bytes", func(i int) error {
		return c.Send(dataOut(p.ITT(), uint32(i), uint32(8+4*i), 4, 0))
	})
}

// trickledBursts takes the smallest bursts and answers each of their R2Ts in time, but
// all of them never.
func trickledBursts(f *field) {
	c := f.enemy(initiator.Options{Keys: append(initiator.Keys{{Name: "MaxBurstLength", Value: "512"}, {Name: "FirstBurstLength", Value: "512"}}, solicited.Keys...)})
	t, err := c.Start(initiator.Command{CDB: cdbWrite16(0, 256), Out: make([]byte, 128<<10), HoldData: true})
	if err != nil {
		f.Fatal(err)
	}
	f.drip(c, "a burst of 512 bytes now and then", func(i int) error {
		if i%10 > 0 || i/10 >= len(t.R2Ts) {
			return nil
		}
		i /= 10
		from := int(t.R2Ts[i].U32(initiator.AtOffset))
		p := c.DataOut(t, t.R2Ts[i].TTT(), 0, from, t.Command.Out[from:from+512])
		p.BHS[1] |= initiator.FlagFinal
		return c.Send(p)
	})
}

// trickledCommand sends a command with immediate data that never ends.
func trickledCommand(f *field) {
	c := f.enemy(initiator.Options{})
	p := write(c, 0, make([]byte, 64<<10))
	p.BHS[5], p.BHS[6], p.BHS[7] = 1, 0, 0
	if err := c.SendBytes(p.BHS[:]); err != nil {
		f.Fatal(err)
	}
	f.drip(c, "a byte of a PDU now and then", func(int) error { return c.SendBytes([]byte{0}) })
}

// Unasked data of commands that are going to be refused take no memory, whatever
// the reason, and the commands end as they always have.
func TestRefusedCommandsTakeNoMemory(t *testing.T) {
	r := newRig(t, rigOptions{config: target.Config{Threads: 1}, lus: 2, rules: func(lus []*scsi.LogicalUnit) []target.AccessRule {
		return []target.AccessRule{{Auth: login.Auth{AllowNone: true}, LUNs: []target.LUNMapping{
			{LUN: 0, LU: lus[0], ReadOnly: true}, {LUN: 1, LU: lus[1]},
		}}}
	}})
	const size = 64 << 10
	good := cdbWrite16(0, size/512)
	reserved, beyond := append([]byte(nil), good...), append([]byte(nil), good...)
	reserved[15], beyond[2] = 0x80, 0xff
	for name, bad := range map[string]struct {
		lun    byte
		cdb    []byte
		status byte
		sense  string
	}{
		"read-only LUN":       {0, good, 2, "7/27"},
		"LUN that is not":     {5, good, 2, "5/25"},
		"unknown operation":   {1, []byte{0xc1, 15: 0}, 2, "5/20"},
		"reserved bit":        {1, reserved, 2, "5/24"},
		"beyond the medium":   {1, beyond, 2, "5/21"},
		"command without any": {1, []byte{0x00, 15: 0}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := r.login(initiator.Options{Keys: initiator.Keys{{Name: "InitialR2T", Value: "No"}}})
			for lun := range uint64(2) {
				if err := c.Ready(lun); err != nil {
					t.Fatal(err)
				}
			}
			p := command(c, bad.cdb, 0x20, size, make([]byte, 1024))
			p.BHS[initiator.AtLUN+1] = bad.lun
			if err := c.Send(p); err != nil {
				t.Fatal(err)
			}
			res := responseOf(t, c, p.ITT())
			if res.BHS[3] != bad.status || bad.sense != "" && senseOf(res) != bad.sense {
				t.Errorf("status %#x, sense %s, expected %#x, %s", res.BHS[3], senseOf(res), bad.status, bad.sense)
			}
			// A PDU that has not come completely: nothing can be said yet, and nothing is held.
			half := command(c, bad.cdb, 0xa0, size, nil)
			half.BHS[initiator.AtLUN+1] = bad.lun
			half.BHS[5], half.BHS[6], half.BHS[7] = size>>16, size>>8&0xff, 0
			if err := c.SendBytes(append(half.BHS[:], make([]byte, 1000)...)); err != nil {
				t.Fatal(err)
			}
			whole := r.login(initiator.Options{ISID: [6]byte{9}}) // its replies come after a pass of the thread
			if err := whole.Ready(1); err != nil {
				t.Fatal(err)
			}
			if h := r.server.Holding(); h.Buffers != 0 {
				t.Errorf("%d buffers are held", h.Buffers)
			}
			if err := c.SendBytes(make([]byte, size-1000)); err != nil {
				t.Fatal(err)
			}
			if res := responseOf(t, c, half.ITT()); res.BHS[3] != bad.status {
				t.Errorf("whole: status %#x, expected %#x", res.BHS[3], bad.status)
			}
			c.Close()
		})
	}
}

// responseOf receives until the response of a command.
func responseOf(t testing.TB, c *initiator.Conn, itt uint32) *initiator.PDU {
	t.Helper()
	for {
		p, err := c.Receive(patience)
		if err != nil {
			t.Fatal(err)
		}
		if p.Opcode() == initiator.OpSCSIResponse && p.ITT() == itt {
			return p
		}
	}
}

// senseOf is key and additional code of a response.
func senseOf(p *initiator.PDU) string {
	if len(p.Data) < 16 {
		return ""
	}
	const hex = "0123456789abcdef"
	s := p.Data[2:]
	return strings.Join([]string{string(hex[s[2]&15]), string(hex[s[12]>>4]) + string(hex[s[12]&15])}, "/")
}

// Sessions that take all buffers by writes whose data they do not send, or by reads
// that they do not take, do not stop another one, and have to give back what they hold
// when others want it: long before their time is up.
func TestHoardersStopNobody(t *testing.T) {
	for name, hoard := range map[string]func(*field, *initiator.Conn){
		"data withheld": func(f *field, c *initiator.Conn) {
			for i := range uint64(8) {
				f.send(c, command(c, cdbWrite16(i*2048, 2048), 0xa0, 1<<20, nil))
			}
		},
		"responses not taken": func(f *field, c *initiator.Conn) {
			for i := range uint64(16) {
				f.send(c, command(c, cdbRead16(i*2048, 2048), 0xc0, 1<<20, nil))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			ram, err := backstore.NewRAM(32<<20, 512)
			if err != nil {
				t.Fatal(err)
			}
			alarm := &alarm{}
			f := &field{TB: t, alarm: alarm, rig: newRig(t, rigOptions{store: ram, config: target.Config{
				Logger: slog.New(alarm), Threads: 1, Buffers: 8 << 20, NOPInterval: -1,
				Limits: target.Limits{SessionMemory: 4 << 20},
			}})}
			f.addQuietTarget()
			f.neighbour = f.newNeighbour()
			defer f.neighbour.c.Close()
			for range 6 {
				c := f.enemy(solicited)
				defer c.Close()
				c.Transport().(*net.TCPConn).SetReadBuffer(4096)
				hoard(f, c)
			}
			eventually.Holds(t, "they have what strangers of an address get", func() bool { return f.rig.server.Unreserved() < 2<<20 })
			for seed := range 20 {
				if err := f.neighbour.round(seed); err != nil {
					t.Fatalf("the neighbour suffers: %v", err)
				}
			}
			eventually.Holds(t, "a hoarder loses", func() bool {
				f.neighbour.long(t) // wants more than its reserve
				return f.rig.server.Threads()[0].Refused[refusals.Hoarded.String()] > 0
			})
		})
	}
}

// long reads a megabyte.
func (n *neighbour) long(t *testing.T) {
	t.Helper()
	mustDo(t, n.c, initiator.Command{CDB: cdbRead16(0, 2048), InLen: 1 << 20})
}

// Nobody pays while the server stands still, and nobody has to.
func TestPausedServerIsPatient(t *testing.T) {
	const interval, timeout = time.Second, 2 * time.Second
	f := &field{TB: t, rig: newRig(t, rigOptions{config: target.Config{Threads: 1, NOPInterval: interval, NOPTimeout: timeout}})}
	c := f.enemy(solicited)
	p := f.openWrite(c, 4096)
	f.rig.server.Stand(2 * (interval + timeout))
	f.send(c, p)
	if f.hear(c, p.ITT()) {
		t.Error("the server has ended a connection because it stood still itself")
	}
}
