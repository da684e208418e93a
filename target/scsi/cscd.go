package scsi

import (
	"bytes"

	"lunar/backstore"
)

// CSCD is a copy source or copy destination (SPC-4 clause 3.1): a logical unit
// as the initiator that asks for the copy has access to it, and a lane into its
// store on the event thread of the command.
type CSCD struct {
	Nexus *Nexus
	Lane  backstore.Lane
}

// findCSCDs finds the logical unit of each CSCD descriptor of the list. One
// that is not there is no error until a segment descriptor uses it.
func (c *Command) findCSCDs(l *copyList) ([]CSCD, *Sense) {
	var out []CSCD
	for at := 0; at < len(l.cscds); at += cscdLength {
		d := l.cscds[at:][:cscdLength]
		if d[0] != cscdIdentification {
			return nil, UnsupportedTargetDescriptor
		}
		if d[1]&0x1f != directAccessDevice || int(d[7]) > 20 {
			return nil, InvalidFieldInList(l.at+at+1, NoBit)
		}
		unit, ok := c.reach(d[4:])
		if ok {
			// DISK BLOCK LENGTH: an initiator that is wrong about it is
			// wrong about the numbers of blocks too.
			size := int(d[29])<<16 | int(d[30])<<8 | int(d[31])
			if size != 0 && size != unit.Nexus.LU.config.BlockSize {
				return nil, InvalidFieldInList(l.at+at+29, NoBit)
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
	for all := lu.designators; len(all) >= header; {
		one := all[:header+int(all[3])]
		all = all[len(one):]
		if one[0]&0x0f == want[0]&0x0f && one[1]&0x3f == want[1]&0x3f && bytes.Equal(one[3:], want[3:]) {
			return true
		}
	}
	return false
}

// mayRead and mayWrite report whether the copy source or destination may be
// used.
func (u *CSCD) mayRead() bool { return u.ready(&copyReads) && u.Nexus.grants(false) }

func (u *CSCD) mayWrite() bool {
	return u.ready(&copyWrites) && u.Nexus.grants(true) && u.Nexus.LU.protection(u.Nexus, u.Nexus.LU.state.Load()) == nil
}

// copyReads and copyWrites stand for what a copy does to its source and its
// destination, which reservations and access states may forbid.
var copyReads, copyWrites = Row{Access: AccessRead}, Row{Access: AccessWrite}

func init() {
	copyReads.barred, copyWrites.barred = copyReads.barsOf(), copyWrites.barsOf()
}

// ready reports whether neither a reservation nor a state of the logical unit
// keeps commands of the row away.
func (u *CSCD) ready(row *Row) bool {
	return u.Nexus.currentBars()&row.barred == 0 && u.Nexus.LU.state.Load().unready(row) == nil
}
