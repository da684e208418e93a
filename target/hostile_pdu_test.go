package target_test

import (
	"time"

	"lunar/backstore"
	"lunar/internal/initiator"
)

// fate is what has to become of a session after an attack.
type fate bool

const (
	survives fate = true
	ends     fate = false
)

// pduAttack is an attack of a few PDUs.
type pduAttack struct {
	name string
	want fate
	o    initiator.Options
	fire func(*field, *initiator.Conn)
}

var (
	digests     = initiator.Options{HeaderDigest: "CRC32C", DataDigest: "CRC32C"}
	noImmediate = initiator.Options{Keys: initiator.Keys{{Name: "ImmediateData", Value: "No"}}}
	firstR2T    = initiator.Options{Keys: initiator.Keys{{Name: "InitialR2T", Value: "Yes"}}}
)

// command is a SCSI command that takes the next CmdSN.
func command(c *initiator.Conn, cdb []byte, flags byte, edtl uint32, data []byte) *initiator.PDU {
	p := initiator.NewPDU(initiator.OpSCSICommand, flags|initiator.AttrSimple, data)
	p.SetU32(initiator.AtITT, c.NewITT())
	p.SetU32(initiator.AtTTT, edtl)
	p.SetU32(initiator.AtCmdSN, c.CmdSN)
	p.SetU32(initiator.AtExpStatSN, c.ExpStatSN)
	copy(p.BHS[initiator.AtCDB:], cdb)
	c.CmdSN++
	return p
}

// write is a WRITE(16) with all of its data.
func write(c *initiator.Conn, lba uint64, data []byte) *initiator.PDU {
	return command(c, cdbWrite16(lba, uint32(len(data)/512)), 0xa0, uint32(len(data)), data)
}

// manage is an immediate task management request.
func manage(c *initiator.Conn, function byte, referenced uint32) *initiator.PDU {
	p := initiator.NewPDU(initiator.OpTaskRequest, initiator.FlagFinal|function, nil)
	p.SetImmediate()
	p.SetU32(initiator.AtITT, c.NewITT())
	p.SetU32(initiator.AtTTT, referenced)
	p.SetU32(initiator.AtCmdSN, c.CmdSN)
	return p
}

// wrongData answers an R2T with a PDU that spoil has been at.
func wrongData(spoil func(*initiator.PDU)) func(*field, *initiator.Conn) {
	return func(f *field, c *initiator.Conn) {
		p := f.openWrite(c, 200<<10)
		spoil(p)
		f.send(c, p)
	}
}

// unsolicited sends a write of n bytes without F and with data, and then
// Data-Out PDUs that build makes.
func unsolicited(n uint32, data int, build func(c *initiator.Conn, itt uint32) []*initiator.PDU) func(*field, *initiator.Conn) {
	return func(f *field, c *initiator.Conn) {
		p := command(c, cdbWrite16(0, n/512), 0x20, n, make([]byte, data))
		f.send(c, p)
		f.send(c, build(c, p.ITT())...)
	}
}

// dataOut is an unsolicited Data-Out PDU.
func dataOut(itt, sn, off uint32, n int, flags byte) *initiator.PDU {
	p := initiator.NewPDU(initiator.OpDataOut, flags, make([]byte, n))
	p.SetU32(initiator.AtITT, itt)
	p.SetU32(initiator.AtTTT, initiator.NoTag)
	p.SetU32(initiator.AtDataSN, sn)
	p.SetU32(initiator.AtOffset, off)
	return p
}

func one(build func(*initiator.Conn) *initiator.PDU) func(*field, *initiator.Conn) {
	return func(f *field, c *initiator.Conn) { f.send(c, build(c)) }
}

// header is a PDU whose header announces lengths that it does not have.
func header(op, flags, ahs byte, n int) *initiator.PDU {
	p := initiator.NewPDU(op|0x40, flags, nil)
	p.KeepLengths = true
	p.BHS[4], p.BHS[5], p.BHS[6], p.BHS[7] = ahs, byte(n>>16), byte(n>>8), byte(n)
	return p
}

func nop(n int) *initiator.PDU {
	p := initiator.NewPDU(initiator.OpNOPOut|0x40, initiator.FlagFinal, make([]byte, n))
	p.SetU32(initiator.AtTTT, initiator.NoTag)
	p.SetU32(initiator.AtITT, 0x4e4f50)
	return p
}

func withAHS(ahs []byte) func(*initiator.Conn) *initiator.PDU {
	return func(c *initiator.Conn) *initiator.PDU {
		p := command(c, cdbRead16(0, 1), 0xc0, 512, nil)
		p.AHS = ahs
		return p
	}
}

func spoiled(build func(*initiator.Conn) *initiator.PDU, spoil func(*initiator.PDU)) func(*field, *initiator.Conn) {
	return one(func(c *initiator.Conn) *initiator.PDU {
		p := build(c)
		spoil(p)
		return p
	})
}

func read512(c *initiator.Conn) *initiator.PDU { return command(c, cdbRead16(0, 1), 0xc0, 512, nil) }

func write4k(c *initiator.Conn) *initiator.PDU { return write(c, 0, make([]byte, 4096)) }

func badHeader(p *initiator.PDU) { p.BadHeaderDigest = true }

func badData(p *initiator.PDU) { p.BadDataDigest = true }

func at(offset int, v uint32) func(*initiator.PDU) {
	return func(p *initiator.PDU) { p.SetU32(offset, v) }
}

var pduAttackTable = []pduAttack{
	{"data segment one byte too long", ends, digests, one(func(*initiator.Conn) *initiator.PDU { return header(initiator.OpNOPOut, 0x80, 0, 256<<10+1) })},
	{"data segment of 16 MiB", ends, firstR2T, one(func(*initiator.Conn) *initiator.PDU { return header(initiator.OpDataOut, 0x80, 0, 1<<24-1) })},
	{"255 words of AHS junk", ends, digests, one(withAHS(pattern(1020, 0x55)))},
	{"AHS of length 0", ends, firstR2T, one(withAHS(make([]byte, 1020)))},
	{"AHS beyond its end", ends, firstR2T, one(withAHS([]byte{0xff, 0xff, 1, 0}))},
	{"255 AHS of unknown types", survives, firstR2T, one(withAHS(repeated([]byte{0, 1, 0x3f, 0}, 255)))},
	{"extended CDB of 1016 bytes", survives, firstR2T, one(withAHS(append([]byte{3, 0xf9, 1, 0}, make([]byte, 1016)...)))},
	{"AHS on a NOP", survives, digests, spoiled(func(*initiator.Conn) *initiator.PDU { return nop(40) }, func(p *initiator.PDU) { p.AHS = make([]byte, 1020) })},

	{"wrong header digest", ends, digests, spoiled(read512, badHeader)},
	{"wrong header digest of a large PDU", ends, digests, spoiled(func(*initiator.Conn) *initiator.PDU { return nop(256 << 10) }, badHeader)},
	{"wrong data digest of a command", survives, digests, spoiled(write4k, badData)},
	{"wrong data digest of a large command", survives, digests, spoiled(func(c *initiator.Conn) *initiator.PDU { return write(c, 0, make([]byte, 64<<10)) }, badData)},
	{"wrong data digest of Data-Out", survives, digests, wrongData(badData)},
	{"wrong data digest of a NOP", survives, digests, spoiled(func(*initiator.Conn) *initiator.PDU { return nop(100) }, badData)},
	{"wrong data digest of a text", survives, digests, spoiled(func(c *initiator.Conn) *initiator.PDU { return text(c, 0x80, "SendTargets=\x00") }, badData)},

	{"CmdSN far ahead", survives, digests, spoiled(write4k, at(initiator.AtCmdSN, 1<<30))},
	{"CmdSN behind", survives, digests, spoiled(write4k, at(initiator.AtCmdSN, 0xfffffff0))},
	{"CmdSN ahead, with data of 64 KiB, twice", survives, digests, func(f *field, c *initiator.Conn) {
		c.CmdSN += 2
		p := write(c, 0, make([]byte, 64<<10))
		f.send(c, p, p)
	}},
	{"the same command twice", survives, digests, func(f *field, c *initiator.Conn) {
		p := write4k(c)
		f.send(c, p, p)
	}},
	{"a tag in use", survives, digests, func(f *field, c *initiator.Conn) {
		p := command(c, cdbWrite16(0, 512), 0xa0, 256<<10, nil)
		q := write(c, 0, make([]byte, 64<<10))
		q.SetU32(initiator.AtITT, p.ITT())
		f.send(c, p, q)
	}},
	{"the reserved tag", survives, digests, spoiled(write4k, at(initiator.AtITT, initiator.NoTag))},

	{"Data-Out for nobody", survives, digests, one(func(*initiator.Conn) *initiator.PDU { return dataOut(0x999, 0, 0, 256<<10, 0x80) })},
	{"Data-Out for a read", survives, digests, func(f *field, c *initiator.Conn) {
		f.hold(backstore.Read)
		p := command(c, cdbRead16(0, 8), 0xc0, 4096, nil)
		f.send(c, p, dataOut(p.ITT(), 0, 0, 4096, 0x80))
	}},
	{"wrong transfer tag", survives, digests, wrongData(at(initiator.AtTTT, 0x12345))},
	{"no transfer tag", survives, digests, wrongData(at(initiator.AtTTT, initiator.NoTag))},
	{"wrong DataSN", survives, digests, wrongData(at(initiator.AtDataSN, 3))},
	{"wrong offset", survives, digests, wrongData(at(initiator.AtOffset, 512))},
	{"offset 4 GiB - 1", survives, digests, wrongData(at(initiator.AtOffset, 0xffffffff))},
	{"beyond the R2T", survives, digests, wrongData(func(p *initiator.PDU) { p.Data = make([]byte, 256<<10) })},
	{"F missing", survives, digests, wrongData(func(p *initiator.PDU) { p.BHS[1] = 0 })},
	{"F early", survives, digests, wrongData(func(p *initiator.PDU) { p.Data = p.Data[:512] })},
	{"F early and empty", survives, digests, wrongData(func(p *initiator.PDU) { p.Data = nil })},
	{"data after the end", survives, digests, func(f *field, c *initiator.Conn) {
		p := f.openWrite(c, 200<<10)
		f.send(c, p, p, p)
	}},
	{"unsolicited data that overlaps", survives, digests, unsolicited(64<<10, 4096, func(_ *initiator.Conn, itt uint32) []*initiator.PDU {
		return []*initiator.PDU{dataOut(itt, 0, 4096, 4096, 0), dataOut(itt, 1, 4096, 4096, 0x80)}
	})},
	{"unsolicited data beyond FirstBurstLength", survives, digests, unsolicited(128<<10, 0, func(_ *initiator.Conn, itt uint32) []*initiator.PDU {
		return []*initiator.PDU{dataOut(itt, 0, 0, 60<<10, 0), dataOut(itt, 1, 60<<10, 60<<10, 0x80)}
	})},
	{"empty unsolicited data without end", survives, digests, unsolicited(64<<10, 512, func(_ *initiator.Conn, itt uint32) (out []*initiator.PDU) {
		for sn := range uint32(2000) {
			out = append(out, dataOut(itt, sn, 512, 0, 0))
		}
		return out
	})},
	{"unsolicited data of a write of nothing", survives, digests, unsolicited(0, 0, func(_ *initiator.Conn, itt uint32) []*initiator.PDU {
		return []*initiator.PDU{dataOut(itt, 0, 0, 512, 0x80)}
	})},
	{"unsolicited data that was not negotiated", survives, firstR2T, unsolicited(4096, 512, func(_ *initiator.Conn, itt uint32) []*initiator.PDU {
		return []*initiator.PDU{dataOut(itt, 0, 512, 3584, 0x80)}
	})},
	{"a write that never sends its unsolicited data", survives, digests, unsolicited(64<<10, 512, func(*initiator.Conn, uint32) []*initiator.PDU { return nil })},

	{"immediate data beyond FirstBurstLength", survives, digests, one(func(c *initiator.Conn) *initiator.PDU { return write(c, 0, make([]byte, 128<<10)) })},
	{"immediate data beyond the expected length", survives, digests, one(func(c *initiator.Conn) *initiator.PDU {
		return command(c, cdbWrite16(0, 1), 0xa0, 512, make([]byte, 32<<10))
	})},
	{"immediate data that was not negotiated", survives, noImmediate, one(func(c *initiator.Conn) *initiator.PDU { return write(c, 0, make([]byte, 32<<10)) })},
	{"immediate data of a read", survives, digests, one(func(c *initiator.Conn) *initiator.PDU {
		return command(c, cdbRead16(0, 64), 0xc0, 32<<10, make([]byte, 32<<10))
	})},
	{"a write of one block that expects 4 GiB", survives, digests, one(func(c *initiator.Conn) *initiator.PDU {
		return command(c, cdbWrite16(0, 1), 0xa0, 0xffffffff, make([]byte, 512))
	})},
	{"a read of one block that expects 4 GiB", survives, digests, one(func(c *initiator.Conn) *initiator.PDU {
		return command(c, cdbRead16(0, 1), 0xc0, 0xffffffff, nil)
	})},
	{"a read of 2 TiB that expects a byte", survives, digests, one(func(c *initiator.Conn) *initiator.PDU {
		return command(c, cdbRead16(0, 0xffffffff), 0xc0, 1, nil)
	})},
	{"a write of 2 TiB that expects a byte", survives, digests, one(func(c *initiator.Conn) *initiator.PDU {
		return command(c, cdbWrite16(0, 0xffffffff), 0xa0, 1, []byte{1})
	})},
	{"a write at the end of the number space", survives, digests, one(func(c *initiator.Conn) *initiator.PDU {
		return command(c, cdbWrite16(0xffffffffffffffff, 2), 0xa0, 1024, make([]byte, 1024))
	})},
	{"both directions", survives, digests, one(func(c *initiator.Conn) *initiator.PDU {
		return command(c, cdbWrite16(0, 1), 0xe0, 512, make([]byte, 512))
	})},
	{"no direction", survives, digests, one(func(c *initiator.Conn) *initiator.PDU { return command(c, cdbRead16(0, 1), 0x80, 512, nil) })},
	{"junk for a LUN", survives, digests, spoiled(write4k, at(initiator.AtLUN, 0xdeadbeef))},
	{"a parameter list that is not there", survives, digests, one(func(c *initiator.Conn) *initiator.PDU {
		return command(c, []byte{0x42, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 0xa0, 24, make([]byte, 24))
	})},

	{"a login in full feature phase", ends, digests, one(func(*initiator.Conn) *initiator.PDU { return initiator.NewPDU(0x43, 0x87, []byte(loginText)) })},
	{"SNACK", survives, digests, one(func(*initiator.Conn) *initiator.PDU { return initiator.NewPDU(initiator.OpSNACK, 0x80, nil) })},
	{"text without end", survives, digests, func(f *field, c *initiator.Conn) {
		p := text(c, 0x40, string(make([]byte, 60000)))
		f.send(c, p)
		if r, err := c.Receive(time.Second); err == nil {
			p.SetU32(initiator.AtTTT, r.TTT())
			f.send(c, p, p)
		}
	}},
	{"text that is none", survives, digests, one(func(c *initiator.Conn) *initiator.PDU { return text(c, 0x80, "\x01\x02=\xff\xfe") })},
	{"a continuation of nothing", survives, digests, spoiled(func(c *initiator.Conn) *initiator.PDU { return text(c, 0x80, "") }, at(initiator.AtTTT, 5))},
	{"logout of another connection", survives, digests, spoiled(func(*initiator.Conn) *initiator.PDU { return initiator.NewPDU(0x46, 0x81, nil) }, at(20, 0x77770000))},
	{"task management of no function", survives, digests, one(func(c *initiator.Conn) *initiator.PDU { return manage(c, 0x7f, 1) })},
}

func repeated(b []byte, n int) (out []byte) {
	for range n {
		out = append(out, b...)
	}
	return out
}

func pduAttacks(f *field) {
	for _, a := range pduAttackTable {
		c := f.enemy(a.o)
		a.fire(f, c)
		if got := fate(f.answers(c)); got != a.want {
			f.Errorf("%s: the session goes on: %t, expected %t; %s", a.name, got, a.want, f.alarm.lastLine())
		}
		f.letGo()
		if rang, _ := f.alarm.take(); len(rang) > 0 {
			f.Errorf("%s: %s", a.name, rang[0])
		}
		if a.want == survives {
			f.abortAll(c)
		}
		c.Close()
	}
}
