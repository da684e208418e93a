package scsi

import (
	"encoding/binary"
	"slices"

	"lunar/target/scsi/sense"
)

// A target port is an iSCSI portal group of a target (RFC 7143 section 4.4.2),
// and each is a target port group of its own: TARGET PORT GROUP and RELATIVE
// TARGET PORT IDENTIFIER are both the portal group tag.

const (
	groupPreferred    = 0x80 // byte 0 of a target port group descriptor: PREF
	groupStateMask    = 0x0f // and ASYMMETRIC ACCESS STATE
	groupExtended     = 0x20 // PARAMETER DATA FORMAT, bits 7-5 of CDB byte 1: extended header
	groupFormatMask   = 0xe0
	groupHeader       = 4 // bytes before the descriptors of SET TARGET PORT GROUPS
	setDescriptorSize = 4
)

// targetPortGroups is the parameter data of REPORT TARGET PORT GROUPS (SPC-4
// clause 6.37): a header, then for each group
//
//	0     PREF, ASYMMETRIC ACCESS STATE
//	1     supported states
//	2-3   TARGET PORT GROUP
//	5     STATUS CODE
//	7     TARGET PORT COUNT, and of each port four bytes, whose last two are
//	      its RELATIVE TARGET PORT IDENTIFIER
//
// The extended header gives no IMPLICIT TRANSITION TIME.
func targetPortGroups(table *accessTable, tags []uint16, extended bool) []byte {
	data := make([]byte, 4)
	if extended {
		data = append(data, groupExtended>>1, 0, 0, 0)
	}
	for _, tag := range tags {
		g := table.of(tag)
		state := byte(g.State)
		if g.Preferred {
			state |= groupPreferred
		}
		data = append(data, state, supportedAccess)
		data = binary.BigEndian.AppendUint16(data, tag)
		data = append(data, 0, g.cause, 0, 1, 0, 0)
		data = binary.BigEndian.AppendUint16(data, tag)
	}
	binary.BigEndian.PutUint32(data, uint32(len(data)-4)) // RETURN DATA LENGTH
	return data
}

func reportTargetPortGroups(c *Command) {
	format := c.CDB[1] & groupFormatMask
	if format != 0 && format != groupExtended {
		c.Fail(sense.InvalidFieldInCDB(1, 7))
		return
	}
	data := targetPortGroups(c.Nexus.LU.access.Load(), c.Nexus.ports(), format == groupExtended)
	c.SendParameter(data, binary.BigEndian.Uint32(c.CDB[6:]))
}

// setTargetPortGroups is SET TARGET PORT GROUPS (SPC-4 clause 6.45): all of its
// descriptors or none. The states are those of the addressed logical unit. The
// change is made at once, so that no group is ever seen in transition.
func setTargetPortGroups(c *Command) {
	states, sense := requestedStates(c.List(), c.Nexus.ports())
	if sense != nil {
		c.Fail(sense)
		return
	}
	c.Nexus.LU.changeAccess(func(table accessTable) {
		for tag, state := range states {
			g := table[tag]
			g.State, g.cause = state, accessExplicit
			table[tag] = g
		}
	}, c.Nexus)
	c.Good()
}

// requestedStates parses a parameter list.
func requestedStates(list []byte, tags []uint16) (map[uint16]AccessState, *sense.Data) {
	if len(list) == 0 {
		return nil, nil
	}
	if len(list) < groupHeader || (len(list)-groupHeader)%setDescriptorSize != 0 {
		return nil, sense.ParameterListLengthError
	}
	states := map[uint16]AccessState{}
	for at := groupHeader; at < len(list); at += setDescriptorSize {
		state, tag := AccessState(list[at]&groupStateMask), binary.BigEndian.Uint16(list[at+2:])
		if !askable(state) {
			return nil, sense.InvalidFieldInList(at, 3)
		}
		if !slices.Contains(tags, tag) {
			return nil, sense.InvalidFieldInList(at+2, sense.NoBit)
		}
		states[tag] = state
	}
	return states, nil
}

// askable reports whether initiators may ask for the state.
func askable(state AccessState) bool {
	for _, row := range accessStates {
		if row.state == state {
			return row.ask
		}
	}
	return false
}
