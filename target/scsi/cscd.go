package scsi

import (
	"bytes"

	"lunar/target/scsi/sense"
	"lunar/target/scsi/thirdparty"
)

// findCSCDs finds the logical unit of each CSCD descriptor of the list. One
// that is not there is no error until a segment descriptor uses it.
func (c *Command) findCSCDs(l *thirdparty.List) ([]CSCD, *sense.Data) {
	var out []CSCD
	for at := 0; at < len(l.CSCDs); at += thirdparty.CSCDLength {
		d := l.CSCDs[at:][:thirdparty.CSCDLength]
		if d[0] != thirdparty.CSCDIdentification {
			return nil, sense.UnsupportedTargetDescriptor
		}
		if d[1]&0x1f != directAccessDevice || int(d[7]) > 20 {
			return nil, sense.InvalidFieldInList(l.At+at+1, sense.NoBit)
		}
		unit, ok := c.reach(d[4:])
		if ok {
			// DISK BLOCK LENGTH: an initiator that is wrong about it is
			// wrong about the numbers of blocks too.
			size := int(d[29])<<16 | int(d[30])<<8 | int(d[31])
			if size != 0 && size != unit.Nexus.LU.config.BlockSize {
				return nil, sense.InvalidFieldInList(l.At+at+29, sense.NoBit)
			}
		}
		out = append(out, unit)
	}
	return out, nil
}

// reach finds the logical unit of a designation descriptor, by a way that is open if
// there is one: others may lead through ports in standby.
func (c *Command) reach(designator []byte) (CSCD, bool) {
	open := func(n *Nexus) bool { return n.LU.isDesignated(designator) && (&CSCD{Nexus: n}).mayRead() }
	if unit, ok := c.Port.Reach(c, open); ok {
		return unit, true
	}
	return c.Port.Reach(c, func(n *Nexus) bool { return n.LU.isDesignated(designator) })
}

// isDesignated reports whether a designation descriptor as of VPD page 83h
// (SPC-4 clause 7.8.6) names the logical unit. Only its own designators do, not
// those of ports.
func (lu *LogicalUnit) isDesignated(want []byte) bool {
	const header = 4
	want = want[:header+int(want[3])]
	for all := lu.config.Designators; len(all) >= header; {
		one := all[:header+int(all[3])]
		all = all[len(one):]
		if one[0]&0x0f == want[0]&0x0f && one[1]&0x3f == want[1]&0x3f && bytes.Equal(one[3:], want[3:]) {
			return true
		}
	}
	return false
}
