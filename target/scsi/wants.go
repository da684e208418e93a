package scsi

import "lunar/backstore/protect"

// compareAndWrite16 is the operation code of COMPARE AND WRITE.
const compareAndWrite16 = 0x89

// Wants returns how many of edtl bytes of Data-Out the logical unit of n will ask for at
// most to run the CDB, so that memory can be set aside before it runs: 0 if it is going
// to be refused, by what holds now, or takes no data.
func Wants(n *Nexus, cdb *CDB, edtl uint32) uint32 {
	row, _ := lookup(cdb)
	if row == nil || n.LU == nil || n.LU.foresees(n, row, cdb) {
		return 0
	}
	switch {
	case row.List != nil:
		return min(edtl, row.List(cdb))
	case row.Access == AccessNone:
		return 0
	case row.Opcode == variableLength: // its length is not known before all of the CDB is
		return edtl
	}
	return uint32(min(uint64(edtl), n.LU.wireBytes(n, row, cdb)))
}

// foresees reports whether a command of the row is going to be refused.
func (lu *LogicalUnit) foresees(n *Nexus, row *Row, cdb *CDB) bool {
	state := lu.state.Load()
	return !lu.supports(row) || n.refuses(row) || state.unready(row) != nil ||
		lu.forbids(n, row, state) != nil || !row.allows(*cdb)
}

// allows reports whether the row knows all bits of the CDB, of which the end may be
// missing.
func (r *Row) allows(cdb CDB) bool {
	if r.Flags&Protectable != 0 {
		cdb[flagsByte(&cdb)] &^= protectField
	}
	if at := controlByte(&cdb); at > 0 {
		cdb[at] &^= nacaBit
	}
	return r.check(&cdb) == nil
}

// wireBytes is how much data a media command brings, or more; 0 if it is out of range, which
// of one that is relayed another server judges.
func (lu *LogicalUnit) wireBytes(n *Nexus, row *Row, cdb *CDB) uint64 {
	lba, count := addressOf(cdb)
	blocks := lu.state.Load().Blocks
	if out := lba >= blocks || count > blocks-lba; out && restrictions(n.restricted.Load())&restrictRelay == 0 {
		return 0
	}
	block := uint64(lu.config.BlockSize)
	if row.Flags&Protectable != 0 && cdb[flagsByte(cdb)]>>protectShift != 0 {
		block += protect.TupleSize
	}
	if row.Opcode == compareAndWrite16 {
		block *= 2
	}
	return max(count, 1) * block // a WRITE SAME of count 0 brings a block
}
