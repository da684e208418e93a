package target

import (
	"lunar/backstore"
	"lunar/target/pdu"
)

// foreseen is how many PDUs Foresee looks at: what they need has to stay in the
// processor's first cache until their turn.
const foreseen = 16

// Foresee implements Receiver. Whoever looks for a block in a large cache waits for the
// memory of the index, and then for that of the block. The lock in between keeps one
// command's waiting from overlapping with the next one's; here they overlap.
func (c *Connection) Foresee(pdus []byte) (n int) {
	var headers [foreseen]*pdu.BHS
	for n < foreseen && len(pdus) >= pdu.BHSLength {
		headers[n] = (*pdu.BHS)(pdus)
		_, _, whole := headers[n].Lengths(false, false)
		pdus = pdus[min(whole, len(pdus)):]
		n++
	}
	if c.closed || n < 2 {
		return n
	}
	for step := range backstore.ForeseeSteps {
		for _, bhs := range headers[:n] {
			c.foresee(bhs, step)
		}
	}
	return n
}

func (c *Connection) foresee(bhs *pdu.BHS, step int) {
	if bhs.Opcode() != pdu.OpSCSICommand {
		return
	}
	l := c.findLUN(bhs.LUN())
	if l == nil {
		return
	}
	if f, ok := backstore.LenderOf(l.lane).(backstore.Foreseer); ok {
		if off, ok := l.nexus.LU.StartsAt((*pdu.SCSICommand)(bhs).CDB()); ok {
			f.Foresee(off, step)
		}
	}
}
