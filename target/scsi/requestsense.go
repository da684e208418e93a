package scsi

import "lunar/target/scsi/sense"

// pendingSense returns what REQUEST SENSE reports for n (SPC-4 clause 6.39): a
// unit attention or a deferred error, which is thereby cleared, else what keeps
// the unit from being ready, else nothing.
func (n *Nexus) pendingSense() *sense.Data {
	if n.LU == nil {
		return sense.LUNotSupported
	}
	if asc, ok := n.takeAttention(); ok {
		return &sense.Data{Key: sense.UnitAttention, ASC: asc}
	}
	if s := n.takeDeferred(); s != nil {
		return s
	}
	if s := n.LU.State().unready(&Row{}); s != nil {
		return s
	}
	return sense.NoAdditionalSense
}

// runRequestSense returns sense data with GOOD status, in descriptor format
// if DESC asks for it.
func runRequestSense(c *Command) {
	descriptor := c.CDB[1]&0x01 != 0
	data := c.Nexus.pendingSense().Append(make([]byte, 0, sense.MaxLength), descriptor)
	c.answer(data, uint32(c.CDB[4]), nil)
}
