package scsi

import (
	"bytes"

	"lunar/target/scsi/reservation"
	"lunar/target/scsi/taskset"
)

// Operation codes by what their commands do, for those of which the row's Access
// does not tell it. Whatever is not in one of these lists may do anything
// (taskset.Alter). Reservations are looked at when a command begins, and fencing
// must not wait for whom it is about.
var (
	freeOpcodes  = []byte{0x00, 0x03, 0x12, 0x16, 0x17, 0x56, 0x57, 0x5e, 0x5f, 0xa0}
	queryOpcodes = []byte{0x1a, 0x1c, 0x25, 0x37, 0x3c, 0x4d, 0x5a, 0x84, 0x9e, 0xa3, 0xb7}

	// extentOpcodes are those whose addressOf is all that they read or write.
	extentOpcodes = []byte{
		0x08, 0x0a, 0x28, 0x2a, 0x2e, 0x2f, 0x34, 0x41, 0x7f, 0x88, 0x89, 0x8a, 0x8b, 0x8e, 0x8f, 0x90, 0x93, 0xa8, 0xaa, 0xae, 0xaf,
	}
)

func (r *Row) classOf() taskset.Class {
	switch {
	case r.Access == AccessRead:
		return taskset.Read
	case r.Access == AccessWrite:
		return taskset.Write
	case bytes.IndexByte(freeOpcodes, r.Opcode) >= 0:
		return taskset.Free
	case bytes.IndexByte(queryOpcodes, r.Opcode) >= 0:
		return taskset.Query
	}
	return taskset.Alter
}

// extent is what the command reads or writes of the medium.
func (c *Command) extent() taskset.Extent {
	if bytes.IndexByte(extentOpcodes, c.CDB[0]) < 0 {
		return taskset.Whole
	}
	first, count := addressOf(&c.CDB)
	return taskset.Extent{First: first, Count: count}
}

// preempts: an ACA condition does not keep PREEMPT AND ABORT of others out.
func (r *Row) preempts() bool {
	return r.Opcode == 0x5f && r.ServiceAction == int(reservation.PreemptAndAbort)
}

// hasNACA reports that CHECK CONDITION status makes an ACA condition.
func (c *Command) hasNACA() bool {
	at := controlByte(&c.CDB)
	return at > 0 && c.CDB[at]&nacaBit != 0 && c.Nexus.normalACA()
}

// normalACA reports whether the nexus may ask for ACA conditions (NORMACA). One
// that must not write must not keep others from writing either.
func (n *Nexus) normalACA() bool { return n.LU != nil && !n.ReadOnly.Load() }
