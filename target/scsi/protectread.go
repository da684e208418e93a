package scsi

import "lunar/backstore/protect"

// joinTuples checks what was read and puts it together for the transport. It
// returns false when the command is to end.
func (s *segment) joinTuples() bool {
	c := s.cmd
	if !s.checkTuples() {
		return false
	}
	wire, blocks, tuples := s.shieldedParts()
	if c.shield.moves {
		protect.Interleave(wire, c.Nexus.LU.config.BlockSize, blocks, tuples)
	} else {
		copy(wire, blocks)
	}
	return true
}

// checkShielded checks what was read for VERIFY or WRITE AND VERIFY, and compares it
// with what arrived if that is asked for. It returns false when the command is to
// end.
func (s *segment) checkShielded(compare bool) bool {
	if !s.checkTuples() {
		return false
	}
	if !compare {
		return true
	}
	wire, blocks, tuples := s.shieldedParts()
	size, unit := s.cmd.Nexus.LU.config.BlockSize, int(s.cmd.wireBlock())
	for i := 0; i*unit < len(wire); i++ {
		want, at := wire[i*unit:(i+1)*unit], s.off+uint32(i*unit)
		if !s.cmd.compare(want[:size], blocks[i*size:(i+1)*size], at) {
			return false
		}
		if tuple := tuples[i*protect.TupleSize : (i+1)*protect.TupleSize]; unit > size && !s.cmd.compare(want[size:], tuple, at+uint32(size)) {
			return false
		}
	}
	return true
}
