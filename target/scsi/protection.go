package scsi

import (
	"encoding/binary"

	"lunar/backstore"
	"lunar/backstore/protect"
	"lunar/target/scsi/sense"
)

// ASCGuardCheckFailed is LOGICAL BLOCK GUARD CHECK FAILED. LOGICAL BLOCK APPLICATION
// TAG CHECK FAILED (1002h) and LOGICAL BLOCK REFERENCE TAG CHECK FAILED (1003h)
// follow it.
const ASCGuardCheckFailed sense.ASC = 0x1001

// inquiryProtect is PROTECT of the standard INQUIRY data, byte 5.
const inquiryProtect = 0x01

// typeCodes are the protection type in P_TYPE of READ CAPACITY(16) data, with
// PROT_EN, and SPT of the extended INQUIRY data: type 1 only, 2 only, 3 only
// (SBC-3 clause 5.16, SPC-4 clause 7.8.7).
var typeCodes = [...]struct{ capacity, extended byte }{
	protect.Type1: {0<<1 | 1, 0 << 3},
	protect.Type2: {1<<1 | 1, 2 << 3},
	protect.Type3: {2<<1 | 1, 4 << 3},
}

// tagChecks are GRD_CHK, APP_CHK and REF_CHK of the extended INQUIRY data.
const tagChecks = 0x07

// protected is a store that keeps protection information.
type protected interface{ Type() protect.Type }

// RDPROTECT, WRPROTECT and VRPROTECT: bits 7 to 5 of byte 1, with 32-byte CDBs of
// byte 10 (SBC-3 clauses 5.8, 5.32 and 5.36).
const (
	protectShift = 5
	protectField = 7 << protectShift
)

// fieldChecks is what the values of these fields have checked. With 0 no tuples
// cross the transport; values that are not there are reserved.
var fieldChecks = [...]struct{ guard, tags bool }{
	0: {true, true},
	1: {true, true},
	2: {false, true},
	3: {false, false},
	4: {true, false},
	5: {true, true},
}

// shield is what a command has to do with protection information. The zero value
// leaves it to the store.
type shield struct {
	active bool // segments are those of openShielded
	moves  bool // each block is followed by its tuple on the transport
	checks protect.Checks
	ref    uint32 // reference tag of the first block
	app    uint16 // application tag that is made when no tuples come
}

// checkProtection is row.check for a row that knows protection information, and a
// logical unit that has some: it allows the field and decodes it. With type 2 only
// 32-byte CDBs may ask for it: the others do not say what the tags are to be
// (SBC-3 clause 4.22.2.4).
func (c *Command) checkProtection() *sense.Data {
	kind, at := c.Nexus.LU.protect, flagsByte(&c.CDB)
	field := c.CDB[at] >> protectShift
	long := at != 1
	switch {
	case field == 0 && !long:
		return c.checkCDB(&c.CDB)
	case kind == protect.Type2 && !long:
		return sense.InvalidOpcode
	case int(field) >= len(fieldChecks):
		return sense.InvalidFieldInCDB(at, 7)
	}
	cdb := c.CDB
	cdb[at] &^= protectField
	if s := c.checkCDB(&cdb); s != nil {
		return s
	}
	checks := fieldChecks[field]
	c.shield = shield{active: true, moves: field != 0}
	c.shield.checks.Guard = checks.guard
	c.shield.checks.Ref = checks.tags && kind != protect.Type3
	if long {
		c.decodeTags(checks.tags)
	} else {
		lba, _ := addressOf(&c.CDB)
		c.shield.ref = uint32(lba)
	}
	return nil
}

// mayProtect reports whether commands of the row may ask for protection information.
func (lu *LogicalUnit) mayProtect(row *Row) bool {
	return lu.protect != protect.None && (lu.protect == protect.Type2) == (row.Opcode == variableLength)
}

// decodeTags takes the expected tags out of a 32-byte CDB.
func (c *Command) decodeTags(checked bool) {
	be, s := binary.BigEndian, &c.shield
	app, mask := be.Uint16(c.CDB[24:]), be.Uint16(c.CDB[26:])
	s.ref, s.app = be.Uint32(c.CDB[20:]), app&mask
	if checked {
		s.checks.App, s.checks.AppMask = app, mask
	}
}

// shieldedSpan is how much of the medium a segment with tuples holds: its buffer
// has the same once more as it crosses the transport, and the tuples.
const shieldedSpan = 120 << 10

// openShielded starts the next segment, of which off and n count what crosses the
// transport. Its buffer begins with that.
func (c *Command) openShielded() *segment {
	wire, block := c.wireBlock(), uint32(c.Nexus.LU.config.BlockSize)
	n := min(shieldedSpan/block*wire, c.limit-c.next)
	blocks := (n + wire - 1) / wire
	ref := c.alloc(wholePages(blocks*wire)+wholePages(blocks*block)+wholePages(blocks*protect.TupleSize), false)
	if ref == nil {
		return nil
	}
	s := c.at(c.tail)
	s.ref, s.off, s.n = ref, c.next, n
	c.tail++
	c.next += n
	return s
}

// shieldedParts are the parts of a segment's buffer: blocks with their tuples as
// they cross the transport, and apart.
func (s *segment) shieldedParts() (wire, blocks, tuples []byte) {
	unit, block := s.cmd.wireBlock(), uint32(s.cmd.Nexus.LU.config.BlockSize)
	n := (s.n + unit - 1) / unit
	b := s.ref.Bytes()
	second := wholePages(n * unit)
	third := second + wholePages(n*block)
	return b[:n*unit], b[second : second+n*block], b[third : third+n*protect.TupleSize]
}

// firstBlock is the number of the segment's first block within the command.
func (s *segment) firstBlock() uint32 { return s.off / s.cmd.wireBlock() }

// startShielded gives a read or a write of the segment's blocks and tuples to the
// lane, which does not check them: the command does.
func (s *segment) startShielded(kind backstore.Kind) {
	_, blocks, tuples := s.shieldedParts()
	s.op.Off = s.cmd.Nexus.LU.byteOff(s.cmd.lba + uint64(s.firstBlock()))
	s.op.Data, s.op.Len, s.op.Tuples, s.op.Unchecked = blocks, int64(len(blocks)), tuples, true
	s.launch(kind)
}

// checkTuples compares the segment's blocks with its tuples as the CDB demands it,
// and fails the command if they do not fit.
func (s *segment) checkTuples() bool {
	c := s.cmd
	_, blocks, tuples := s.shieldedParts()
	lu, first := c.Nexus.LU, s.firstBlock()
	at, wrong := c.shield.checks.Check(lu.protect, lu.config.BlockSize, blocks, tuples, c.shield.ref+first)
	if wrong != 0 {
		c.Fail(c.sense(wrongTuple(c.lba+uint64(first)+uint64(at), wrong)))
	}
	return wrong == 0
}

// wrongTuple is LOGICAL BLOCK GUARD, APPLICATION TAG or REFERENCE TAG CHECK FAILED
// (SBC-3 clause 4.22.3).
func wrongTuple(lba uint64, field protect.Field) sense.Data {
	return sense.Data{Key: sense.AbortedCommand, ASC: ASCGuardCheckFailed + sense.ASC(field-protect.GuardField), InfoValid: true, Info: lba}
}
