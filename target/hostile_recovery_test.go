package target_test

import (
	"context"
	"math/rand/v2"
	"net"
	"time"

	"lunar/internal/initiator"
	"lunar/target/login"
)

// shortRetention keeps what the attacker leaves behind for a second.
func shortRetention(o *login.Offer) { o.DefaultTime2Wait, o.DefaultTime2Retain = 0, 1 }

// lasting are the keys of a session at ErrorRecoveryLevel 2 with several connections.
var lasting = initiator.Keys{
	{Name: "ErrorRecoveryLevel", Value: "2"}, {Name: "MaxConnections", Value: "4"}, {Name: "DefaultTime2Wait", Value: "0"},
	{Name: "DefaultTime2Retain", Value: "20"}, {Name: "InitialR2T", Value: "Yes"}, {Name: "ImmediateData", Value: "No"},
}

// accomplice is a further connection of the attacker's session, nil if it is refused.
func (f *field) accomplice(c *initiator.Conn, cid uint16) *initiator.Conn {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	n, err := c.Join(ctx, f.rig.addr, initiator.Options{Target: testTarget, CID: cid})
	if err != nil {
		return nil
	}
	n.Timeout = 10 * time.Second
	f.enemies = append(f.enemies, n)
	return n
}

// strangeRequest is a PDU that speaks of tasks and connections, its own or others'.
func strangeRequest(r *rand.Rand, c *initiator.Conn, known uint32) *initiator.PDU {
	number := func() uint32 {
		return [...]uint32{0, 1, 2, known, known - 1, c.ExpStatSN, initiator.NoTag, r.Uint32()}[r.IntN(8)]
	}
	switch r.IntN(5) {
	case 0:
		p := manage(c, initiator.TaskReassign, 1+r.Uint32N(max(known, 1)))
		p.SetU32(initiator.AtDataSN, number())
		return p
	case 1:
		p := initiator.NewPDU(initiator.OpLogout, initiator.FlagFinal|byte(1+r.IntN(3)), nil)
		p.SetImmediate()
		p.SetU32(initiator.AtITT, c.NewITT())
		p.SetU32(initiator.AtTTT, uint32(r.IntN(6))<<16) // the CID
		p.SetU32(initiator.AtCmdSN, c.CmdSN)
		return p
	case 2:
		p := initiator.NewPDU(initiator.OpSNACK, initiator.FlagFinal|byte(r.IntN(16)), nil)
		for _, at := range []int{initiator.AtITT, initiator.AtTTT, initiator.AtExpStatSN, initiator.AtOffset, initiator.AtLength} {
			p.SetU32(at, number())
		}
		return p
	case 3:
		return dataOut(number(), number()%4, number()%4096, r.IntN(2048), byte(r.IntN(2))<<7)
	default:
		return manage(c, byte(1+r.IntN(8)), number())
	}
}

// connectionWar opens, replaces and cuts connections of one session while commands are
// under way on all of them, and moves tasks from everywhere to everywhere.
func connectionWar(f *field) {
	r := rand.New(rand.NewPCG(11, 12))
	for range 6 {
		lead := f.enemy(initiator.Options{Keys: lasting})
		conns := []*initiator.Conn{lead}
		for range 60 {
			i := r.IntN(len(conns))
			c := conns[i]
			switch r.IntN(8) {
			case 0:
				if n := f.accomplice(lead, uint16(r.IntN(5))); n != nil {
					conns = append(conns, n)
				}
			case 1:
				c.Close()
			case 2:
				f.send(c, command(c, cdbRead16(0, 256), 0xc0, 128<<10, nil))
			case 3:
				f.send(c, command(c, cdbWrite16(uint64(r.IntN(64)), 64), 0xa0, 32<<10, nil))
			case 4:
				c.CmdSN++ // one that never comes
			default:
				f.send(c, strangeRequest(r, c, lead.NewITT()))
			}
		}
		for _, c := range conns {
			c.Close()
		}
	}
}

// lostWithoutEnd leaves one connection after the other behind, each with a write that
// holds memory.
func lostWithoutEnd(f *field) {
	lead := f.enemy(initiator.Options{Keys: lasting})
	for i := range 60 {
		if err := lead.Ping(nil); err != nil { // or it is taken for dead
			f.Fatal(err)
		}
		n := f.accomplice(lead, uint16(1+i))
		if n == nil {
			continue // the end of the last one has not been seen yet
		}
		f.send(n, command(n, cdbWrite16(uint64(i), 8), 0xa0, 4096, nil))
		n.Close()
	}
	if lost := len(f.rig.server.Sessions()); lost != 2 {
		f.Errorf("%d sessions, expected the attacker's and the neighbour's", lost)
	}
}

// neverAcknowledged reads without end and says of nothing that it has come.
func neverAcknowledged(f *field) {
	for _, level := range []string{"1", "2"} {
		c := f.enemy(initiator.Options{Keys: append(initiator.Keys{{Name: "ErrorRecoveryLevel", Value: level}}, lasting[1:]...)})
		c.IgnorePings = true
		go func(conn net.Conn) { // takes it all
			b := make([]byte, 64<<10)
			for _, err := conn.Read(b); err == nil; _, err = conn.Read(b) {
				continue
			}
		}(c.Transport().(net.Conn))
		before := heap()
		for range 200 {
			f.send(c, command(c, cdbRead16(0, 512), 0xc0, 256<<10, nil))
			p := command(c, cdbRead16(0, 512), 0xc0, 256<<10, nil)
			p.SetImmediate()
			c.CmdSN--
			f.send(c, p)
		}
		f.expectHeap(before + 12<<20)
		c.Close()
	}
}

// snackFlood asks again and again for all that was sent, and reads nothing.
func snackFlood(f *field) {
	for _, level := range []string{"1", "2"} {
		c := f.enemy(initiator.Options{Keys: append(initiator.Keys{{Name: "ErrorRecoveryLevel", Value: level}}, lasting[1:]...)})
		c.Transport().(*net.TCPConn).SetReadBuffer(4096)
		c.Timeout = 200 * time.Millisecond
		first := c.NewITT() + 1
		for range 8 {
			f.send(c, command(c, cdbRead16(0, 256), 0xc0, 128<<10, nil))
		}
		before := heap()
		for i := range uint32(400) {
			p := initiator.NewPDU(initiator.OpSNACK, initiator.FlagFinal, nil)
			p.SetU32(initiator.AtITT, first+i%8)
			p.SetU32(initiator.AtTTT, initiator.NoTag)
			p.SetU32(initiator.AtExpStatSN, c.ExpStatSN)
			f.send(c, p)
		}
		f.expectHeap(before + 12<<20)
		c.Close()
	}
}
