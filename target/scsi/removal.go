package scsi

import "lunar/target/scsi/sense"

// loadOrEject does what LOEJ asks for. While an initiator prevents the removal
// of the medium neither is possible (SBC-3 clause 5.27).
func (lu *LogicalUnit) loadOrEject(by *Nexus, what byte) *sense.Data {
	if what&loadEjectBit == 0 {
		return nil
	}
	lu.mu.Lock()
	defer lu.mu.Unlock()
	for n := range lu.mu.nexuses {
		if n.prevents.Load() {
			return sense.MediumRemovalPrevented
		}
	}
	s := *lu.state.Load()
	loaded := s.Ejected && what&startBit != 0
	s.Ejected = what&startBit == 0
	lu.state.Store(&s)
	if loaded {
		for n := range lu.mu.nexuses {
			if n != by {
				n.Attention(sense.ASCMediumMayHaveChanged)
			}
		}
	}
	return nil
}

// runPreventAllow runs PREVENT ALLOW MEDIUM REMOVAL (SPC-4 clause 6.14): each
// initiator port prevents it for itself, until it allows it, its session ends,
// or the unit is reset.
func runPreventAllow(c *Command) {
	lu, prevent := c.Nexus.LU, c.CDB[4]&0x01 != 0
	if prevent && restrictions(c.Nexus.restricted.Load())&restrictWrite != 0 {
		c.FailStatus(ReservationConflict) // only to allow it is allowed (SPC-4 table 65)
		return
	}
	lu.mu.Lock() // an eject sees it or comes before
	c.Nexus.prevents.Store(prevent)
	lu.mu.Unlock()
	c.Good()
}

// allowRemoval ends what all initiators prevent. The caller holds mu.
func (lu *LogicalUnit) allowRemoval() {
	for n := range lu.mu.nexuses {
		n.prevents.Store(false)
	}
}
