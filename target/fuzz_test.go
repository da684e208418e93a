package target_test

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lunar/backstore"
	"lunar/backstore/errstore"
	"lunar/internal/initiator"
	"lunar/target"
	"lunar/target/login"
)

// Bits of the first byte of an input: what the login has negotiated, and
// whether the rest are bytes of the stream or headers and data that the test
// makes PDUs of, with the lengths and digests that they need to get through.
const (
	fuzzHeaderDigest = 1 << iota
	fuzzDataDigest
	fuzzInitialR2T
	fuzzNoImmediate
	fuzzShortBursts
	fuzzFramed
	fuzzRecovery // ErrorRecoveryLevel 1, of several connections 2
	fuzzShared   // two connections; PDUs with bit 7 of their first byte go to the second, after the first has ended at level 2
)

func fuzzParams(mode byte) login.Params {
	p := login.DefaultParams()
	p.HeaderDigest, p.DataDigest = mode&fuzzHeaderDigest != 0, mode&fuzzDataDigest != 0
	p.InitialR2T, p.ImmediateData = mode&fuzzInitialR2T != 0, mode&fuzzNoImmediate == 0
	p.MaxOutstandingR2T = 4
	p.TargetMaxRecvDataSegmentLength = 64 << 10
	if mode&fuzzShortBursts != 0 {
		p.FirstBurstLength, p.MaxBurstLength = 512, 1024
	}
	if mode&fuzzRecovery != 0 {
		p.ErrorRecoveryLevel, p.MaxOutstandingR2T = 1, 1
	}
	if mode&fuzzShared != 0 {
		p.MaxConnections, p.ErrorRecoveryLevel = 2, 2*p.ErrorRecoveryLevel
	}
	return p
}

// fuzzWire makes the bytes of the streams out of an input. Headers of framed
// inputs keep their DataSegmentLength as far as there is data for it.
func fuzzWire(mode byte, in []byte) (streams [2][]byte) {
	if mode&fuzzFramed == 0 {
		streams[0] = in
		return streams
	}
	var wires [2]bytes.Buffer
	for len(in) >= 48 {
		p := &initiator.PDU{BHS: [48]byte(in)}
		in = in[48:]
		n := min(int(p.BHS[6])<<8|int(p.BHS[7]), len(in))
		p.Data, in = in[:n], in[n:]
		wire := &wires[0]
		if mode&fuzzShared != 0 && p.BHS[0]&0x80 != 0 {
			wire, p.BHS[0] = &wires[1], p.BHS[0]&0x7f
		}
		w := initiator.NewEstablished(wire, initiator.Params{
			HeaderDigest: mode&fuzzHeaderDigest != 0, DataDigest: mode&fuzzDataDigest != 0,
		}, 1, 1)
		if err := w.Send(p); err != nil {
			panic(err) // a bytes.Buffer takes everything
		}
	}
	return [2][]byte{wires[0].Bytes(), wires[1].Bytes()}
}

// snack is a SNACK of a type for a run of numbers.
func snack(kind byte, itt, beg, run uint32) *initiator.PDU {
	p := initiator.NewPDU(initiator.OpSNACK, initiator.FlagFinal|kind, nil)
	p.SetU32(initiator.AtITT, itt)
	p.SetU32(initiator.AtTTT, 7)
	p.SetU32(initiator.AtExpStatSN, 1)
	p.SetU32(initiator.AtOffset, beg)
	p.SetU32(initiator.AtLength, run)
	return p
}

// fuzzSeeds are conversations in framed form, without their first byte.
func fuzzSeeds() map[string][]byte {
	ready := func(c *initiator.Conn) *initiator.PDU { return command(c, make([]byte, 6), 0x80, 0, nil) }
	seeds := map[string]func(*initiator.Conn) []*initiator.PDU{
		"read":      func(c *initiator.Conn) []*initiator.PDU { return []*initiator.PDU{read512(c), read512(c)} },
		"immediate": func(c *initiator.Conn) []*initiator.PDU { return []*initiator.PDU{write4k(c), write4k(c)} },
		"solicited": func(c *initiator.Conn) []*initiator.PDU {
			p := command(c, cdbWrite16(0, 4), 0xa0, 2048, nil)
			d := dataOut(p.ITT(), 0, 0, 1024, 0)
			d.SetU32(initiator.AtTTT, 1) // the first tag that a connection gives
			e := dataOut(p.ITT(), 1, 1024, 1024, 0x80)
			e.SetU32(initiator.AtTTT, 1)
			return []*initiator.PDU{p, d, e}
		},
		"unsolicited": func(c *initiator.Conn) []*initiator.PDU {
			p := command(c, cdbWrite16(0, 8), 0x20, 4096, make([]byte, 512))
			return []*initiator.PDU{p, dataOut(p.ITT(), 0, 512, 512, 0), dataOut(p.ITT(), 1, 1024, 3072, 0x80)}
		},
		"placed": func(c *initiator.Conn) []*initiator.PDU {
			p := command(c, cdbWrite16(0, 128), 0x20, 64<<10, make([]byte, 32<<10))
			return []*initiator.PDU{p, dataOut(p.ITT(), 0, 32<<10, 32<<10, 0x80)}
		},
		"early": func(c *initiator.Conn) []*initiator.PDU {
			c.CmdSN++
			p, q := write4k(c), read512(c)
			c.CmdSN = 2
			return []*initiator.PDU{p, q, ready(c)}
		},
		"aborted": func(c *initiator.Conn) []*initiator.PDU {
			p := command(c, cdbWrite16(0, 4), 0xa0, 2048, nil)
			return []*initiator.PDU{p, manage(c, initiator.AbortTask, p.ITT()), manage(c, initiator.LogicalUnitReset, initiator.NoTag)}
		},
		"control": func(c *initiator.Conn) []*initiator.PDU {
			return []*initiator.PDU{nop(40), text(c, 0x40, "SendTargets"), text(c, 0x80, "SendTargets=\x00"), header(initiator.OpSNACK, 0x80, 0, 0)}
		},
		"parameters": func(c *initiator.Conn) []*initiator.PDU {
			unmap := make([]byte, 24)
			unmap[1], unmap[3], unmap[19] = 22, 16, 8
			return []*initiator.PDU{
				command(c, []byte{0x42, 8: 24}, 0xa0, 24, unmap),
				command(c, []byte{0x55, 0x10, 8: 28}, 0xa0, 28, append(append(make([]byte, 8), 8, 18, 4), make([]byte, 17)...)),
				command(c, []byte{0x89, 13: 1}, 0xa0, 1024, make([]byte, 1024)),
			}
		},
		"snacks": func(c *initiator.Conn) []*initiator.PDU {
			p := command(c, cdbRead16(0, 8), 0xc0, 4096, nil)
			return []*initiator.PDU{p, snack(0, p.ITT(), 0, 1), snack(0, p.ITT(), 0, 0), snack(1, initiator.NoTag, 0, 0), snack(2, p.ITT(), 1, 0), snack(3, p.ITT(), 0, 0),
				command(c, cdbWrite16(0, 4), 0xa0, 2048, nil), snack(0, c.NewITT()-1, 0, 0)}
		},
		"reassigned": func(c *initiator.Conn) []*initiator.PDU {
			p, q := command(c, cdbRead16(0, 8), 0xc0, 4096, nil), command(c, cdbWrite16(0, 4), 0xa0, 2048, nil)
			bye := initiator.NewPDU(initiator.OpLogout|0x40, 0x82, nil)
			out := []*initiator.PDU{bye, manage(c, initiator.TaskReassign, p.ITT()), manage(c, initiator.TaskReassign, q.ITT()), dataOut(q.ITT(), 0, 0, 2048, 0x80), read512(c)}
			for _, second := range out {
				second.BHS[0] |= 0x80
			}
			return append([]*initiator.PDU{p, q}, out...)
		},
		"shared": func(c *initiator.Conn) []*initiator.PDU {
			var out []*initiator.PDU
			for i := range 6 {
				p := write4k(c)
				if i%2 == 0 {
					p = command(c, cdbWrite16(0, 8), 0x20, 4096, make([]byte, 512))
					out = append(out, dataOut(p.ITT(), 0, 512, 3584, 0x80))
				}
				p.BHS[0] |= byte(i%3) << 7
				out = append([]*initiator.PDU{p}, out...)
			}
			return append(out, manage(c, initiator.LogicalUnitReset, initiator.NoTag))
		},
		"logout": func(c *initiator.Conn) []*initiator.PDU {
			return []*initiator.PDU{initiator.NewPDU(initiator.OpLogout|0x40, 0x80, nil), nop(4)}
		},
	}
	out := map[string][]byte{}
	for name, build := range seeds {
		c := initiator.NewEstablished(&bytes.Buffer{}, initiator.Params{}, 1, 1)
		var in []byte
		for _, p := range append([]*initiator.PDU{ready(c)}, build(c)...) {
			p.BHS[5], p.BHS[6], p.BHS[7] = 0, byte(len(p.Data)>>8), byte(len(p.Data))
			in = append(append(in, p.BHS[:]...), p.Data...)
		}
		out[name] = in
	}
	return out
}

// newFuzzField is a server of two targets in peace, without a watch on silent
// peers: how long an input takes is the fuzzer's affair.
func newFuzzField(t testing.TB) *field {
	t.Helper()
	ram, err := backstore.NewRAM(1<<20, 512)
	if err != nil {
		t.Fatal(err)
	}
	f := &field{TB: t, store: errstore.Wrap(ram), alarm: &alarm{}}
	f.rig = newRig(t, rigOptions{store: f.store, config: target.Config{
		Logger: slog.New(f.alarm), Threads: 1, Buffers: 4 << 20, NOPInterval: -1, Limits: fieldLimits,
	}})
	f.addQuietTarget()
	f.neighbour = f.newNeighbour()
	return f
}

const fuzzInitiator = "iqn.2026-01.lunar:fuzz"

// peers are the client's ends of the connections of a session that has logged in
// already, and the channel that says when the server has forgotten it.
func (f *field) peers(p login.Params) (conns []*net.UnixConn, ended <-chan struct{}) {
	f.Helper()
	var theirs []target.Datamover
	for range p.MaxConnections {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			f.Fatal(err)
		}
		theirs = append(theirs, tcpOf(f, f.rig.server).Datamover(fds[0], &p.ConnectionParams))
		file := os.NewFile(uintptr(fds[1]), "peer")
		c, err := net.FileConn(file)
		file.Close()
		if err != nil {
			f.Fatal(err)
		}
		conns = append(conns, c.(*net.UnixConn))
	}
	ended, err := f.rig.server.Adopt(theirs, testTarget, fuzzInitiator, p)
	if err != nil {
		f.Fatal(err)
	}
	return conns, ended
}

// converse sends the bytes, reads all that comes, and waits for the end.
func (f *field) converse(mode byte, in []byte) {
	f.Helper()
	p := fuzzParams(mode)
	conns, ended := f.peers(p)
	wire, ends := fuzzWire(mode, in), []<-chan struct{}{ended}
	for i, c := range conns {
		defer c.Close()
		heard := make(chan struct{})
		go func() { io.Copy(io.Discard, c); close(heard) }()
		c.SetWriteDeadline(time.Now().Add(patience))
		c.Write(wire[i]) // the server may end the session before it has all
		if p.ErrorRecoveryLevel == 2 {
			c.CloseWrite()
			f.await(heard)
		}
		ends = append(ends, heard)
	}
	for _, c := range conns {
		c.CloseWrite()
	}
	if p.ErrorRecoveryLevel == 2 { // or what is lost stays
		f.rig.server.Kick(func(s target.SessionStats) bool { return s.Initiator == fuzzInitiator })
	}
	for _, done := range ends {
		f.await(done)
	}
}

func (f *field) await(done <-chan struct{}) {
	f.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		f.Fatalf("the session does not end; last logged: %s", f.alarm.lastLine())
	}
}

// unharmed checks that the session has left nothing and the neighbour lives.
func (f *field) unharmed() {
	f.Helper()
	if err := f.neighbour.round(0); err != nil {
		f.Fatalf("the neighbour suffers: %v", err)
	}
	if h := f.rig.server.Holding(); h.Buffers != 0 || h.Sessions != 1 {
		f.Fatalf("left behind: %+v", h)
	}
	if rang, _ := f.alarm.take(); len(rang) > 0 {
		f.Fatal(rang[0])
	}
}

// FuzzSession feeds arbitrary bytes into a session in full feature phase.
func FuzzSession(f *testing.F) {
	for _, in := range fuzzSeeds() {
		for mode := range byte(fuzzFramed) {
			f.Add(mode|fuzzFramed, in)
		}
		for _, several := range []byte{fuzzRecovery, fuzzShared, fuzzRecovery | fuzzShared} {
			f.Add(several|fuzzFramed, in)
			f.Add(several|fuzzFramed|fuzzDataDigest|fuzzInitialR2T|fuzzNoImmediate, in)
		}
		f.Add(byte(0), in)
		f.Add(byte(fuzzHeaderDigest|fuzzDataDigest), fuzzWire(fuzzFramed|fuzzHeaderDigest|fuzzDataDigest, in)[0])
	}
	server := newFuzzField(f)
	f.Fuzz(func(t *testing.T, mode byte, in []byte) {
		f := *server
		f.TB = t
		f.converse(mode, in)
		f.unharmed()
	})
}
