package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"lunar/internal/initiator"
)

// fuzzSession sends PDUs within sessions, each of which lives for some of them.
func fuzzSession(s *scene) sender {
	return func(ctx context.Context, r *rand.Rand) (string, error) {
		o := stranger(openTarget, 1<<20|r.IntN(1<<12))
		o.HeaderDigest, o.DataDigest = pick(r, "None", "CRC32C"), pick(r, "None", "CRC32C")
		o.Keys = initiator.Keys{
			{Name: "ErrorRecoveryLevel", Value: fmt.Sprint(r.IntN(3))}, {Name: "MaxConnections", Value: fmt.Sprint(1 + r.IntN(4))},
			{Name: "DefaultTime2Wait", Value: "0"}, {Name: "DefaultTime2Retain", Value: fmt.Sprint(r.IntN(2))},
			{Name: "InitialR2T", Value: pick(r, "Yes", "No")}, {Name: "ImmediateData", Value: pick(r, "Yes", "No")},
			{Name: "FirstBurstLength", Value: pick(r, "512", "65536", "262144")}, {Name: "MaxBurstLength", Value: pick(r, "512", "262144", "16777215")},
			{Name: "MaxRecvDataSegmentLength", Value: pick(r, "512", "8192", "262144")}, {Name: "MaxOutstandingR2T", Value: fmt.Sprint(1 + r.IntN(8))},
		}
		c, err := s.login(ctx, fuzzAddress(r), o)
		if err != nil {
			return "", err
		}
		c.Timeout = 300 * time.Millisecond
		conns := []*initiator.Conn{c}
		defer func() {
			for _, c := range conns {
				c.Close()
			}
		}()
		seen := map[string]bool{}
		for range 1 + r.IntN(40) {
			c := conns[r.IntN(len(conns))]
			if odds(r, 20) && len(conns) < 4 {
				if more, err := s.joined(ctx, c, r); err == nil {
					conns = append(conns, more)
				}
			}
			p := sessionPDU(r, c)
			if c.Send(p) != nil {
				break
			}
		}
		for _, c := range conns {
			watch(c, seen)
		}
		return strings.Join(slices.Sorted(maps.Keys(seen)), "\n"), nil
	}
}

// joined is a further connection of a session.
func (s *scene) joined(ctx context.Context, c *initiator.Conn, r *rand.Rand) (*initiator.Conn, error) {
	nc, err := dialFrom(ctx, fuzzAddress(r), s.Portal)
	if err != nil {
		return nil, err
	}
	more, err := c.JoinOver(nc, initiator.Options{Target: openTarget, Initiator: strangerName, CID: uint16(r.IntN(6))})
	if err != nil {
		nc.Close()
		return nil, err
	}
	more.Timeout = c.Timeout
	return more, nil
}

// watch notes what comes until nothing does.
func watch(c *initiator.Conn, seen map[string]bool) {
	ping := initiator.NewPDU(initiator.OpNOPOut, initiator.FlagFinal, nil)
	ping.SetU32(initiator.AtITT, 0x7fffffff)
	ping.SetU32(initiator.AtTTT, initiator.NoTag)
	ping.SetU32(initiator.AtCmdSN, c.CmdSN)
	ping.SetImmediate()
	if err := c.Send(ping); err != nil {
		seen["closed"] = true
		return
	}
	for range 500 {
		p, err := c.Receive(0)
		if err != nil {
			seen[ended(err)] = true
			return
		}
		switch p.Opcode() {
		case initiator.OpReject:
			seen[fmt.Sprintf("reject-%02x", p.BHS[2])] = true
		case initiator.OpTaskResponse, initiator.OpLogoutResponse:
			seen[fmt.Sprintf("%02x-%02x", p.Opcode(), p.BHS[2])] = true
		case initiator.OpSCSIResponse:
			seen[fmt.Sprintf("status-%02x-%02x", p.BHS[2], p.BHS[3])] = true
		case initiator.OpNOPIn:
			if p.ITT() == 0x7fffffff {
				return
			}
		default:
			seen[fmt.Sprintf("%02x", p.Opcode())] = true
		}
	}
}

// sessionPDU draws a PDU of an initiator.
func sessionPDU(r *rand.Rand, c *initiator.Conn) *initiator.PDU {
	tag := func() uint32 { return pick(r, uint32(r.IntN(8)), c.NewITT(), initiator.NoTag, r.Uint32()) }
	data := noise(r, pick(r, 0, 0, 1, 24, 512, 4096, 65536))
	p := initiator.NewPDU(pick[byte](r, 0, 1, 1, 1, 2, 4, 5, 5, 6, 0x10, byte(r.IntN(64))), pick(r, 0x80, 0xc0, 0xa0, 0x20, byte(r.Uint32())), data)
	p.SetU32(initiator.AtITT, tag())
	p.SetU32(initiator.AtTTT, tag())
	p.SetU32(initiator.AtCmdSN, pick(r, c.CmdSN, c.CmdSN, c.CmdSN+uint32(r.IntN(4)), r.Uint32()))
	p.SetU32(initiator.AtExpStatSN, pick(r, c.ExpStatSN, c.ExpStatSN, r.Uint32()))
	if odds(r, 3) {
		p.SetImmediate()
	}
	switch p.Opcode() {
	case initiator.OpSCSICommand:
		p.BHS[1] = p.BHS[1]&^7 | byte(r.IntN(8))
		n := pick(r, 1, 8, 512, r.IntN(1<<16))
		copy(p.BHS[initiator.AtCDB:], cdb16(pick[byte](r, 0x88, 0x8a, 0x00, 0x12), int(number(r)>>1), n))
		p.SetU32(initiator.AtTTT, pick(r, uint32(n)*512, uint32(len(data)), r.Uint32()))
		if p.BHS[0]&0x40 == 0 {
			c.CmdSN++
		}
	case initiator.OpTaskRequest:
		p.BHS[1] = 0x80 | byte(r.IntN(16))
	case initiator.OpTextRequest:
		p.Data = loginText(r)
		p.SetU32(initiator.AtTTT, pick(r, initiator.NoTag, tag()))
	case initiator.OpDataOut, initiator.OpSNACK:
		for at := initiator.AtDataSN; at < 48; at += 4 {
			p.SetU32(at, pick(r, uint32(r.IntN(4)), uint32(512*r.IntN(512)), r.Uint32()))
		}
	}
	p.BadHeaderDigest, p.BadDataDigest = odds(r, 40), odds(r, 20)
	switch {
	case odds(r, 20):
		p.AHS = append([]byte{0, byte(r.IntN(8)), byte(r.IntN(4)), 0}, noise(r, 4*r.IntN(8))...)
	case odds(r, 40):
		p.KeepLengths = true
		copy(p.BHS[4:8], noise(r, 4))
	case odds(r, 8):
		p.BHS[r.IntN(48)] ^= 1 << r.IntN(8)
	}
	return p
}
