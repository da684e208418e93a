package scsi

import (
	"sync/atomic"

	"lunar/target/scsi/reservation"
)

// Nexus is an I_T_L nexus (SAM-5 clause 4.8): one initiator port's view of
// one logical unit. The session makes it at login; it lives as long as the
// session keeps the LUN mapped.
type Nexus struct {
	LU        *LogicalUnit
	LUN       uint64          // the LUN as the initiator addresses it, 8 bytes big endian
	Holder    string          // whom shares of what is limited count for: who has proven to be who, or an address; empty: Initiator
	Initiator string          // initiator port name: iSCSI name ",i,0x" ISID (RFC 7143 section 4.2.7)
	Proven    any             // who has proven to be behind Initiator, in the transport's terms and comparable; nil: it is a claim
	Target    string          // iSCSI name of the target, for VPD page 83h; empty if the port has none
	TargetTag uint16          // relative target port identifier: the target portal group tag
	Ports     func() []uint16 // the tags of the target's portal groups, ascending; nil: TargetTag alone
	Map       func() []uint64 // the LUN numbers (EncodeLUN) that this initiator may see, for REPORT LUNS, in ascending order

	// ReadOnly: this initiator's mapping is write protected. It may change at any
	// time; copies on other event threads look at it too.
	ReadOnly atomic.Bool

	// Granted is what the initiator port may do here by the configuration of now:
	// whether the LUN is mapped to it, and to be read only. Copies ask before each
	// part, on any goroutine and also when the session has ended that they were begun
	// in. Nil: it is mapped.
	Granted func() (mapped, readOnly bool)

	// Audit logs what the initiator has changed for others, with who it is. Nil:
	// nobody wants to know.
	Audit func(what string, args ...any)

	// EndTasks ends the nexus's tasks but except, without status. It calls
	// done on any goroutine when nothing more is done for them; for a task that
	// is Awaiting, it does not wait. Nil: there are none.
	EndTasks func(except *Command, done func())

	// AwaitTasks calls done, on any goroutine, when those of the nexus's tasks
	// have ended for which match says so; match is called on their threads. Nil:
	// there are none.
	AwaitTasks func(match func(*Command) bool, done func())

	// Remote: its session is at another server, which relays commands of it. Its end leaves alone
	// what of LogicalUnit.Tenure another one than Tenure has.
	Remote bool
	Tenure uint64

	restricted atomic.Uint32 // restrictions; stored under LogicalUnit.mu
	passage    *passage      // to another server; nil: nothing was relayed. Stored under LogicalUnit.mu
	ended      atomic.Bool   // Detach: its restrictions are not kept up to date any more
	attentions attentionQueue
	prevents   atomic.Bool // PREVENT: the medium stays
	buffers    buffers
	wrote      atomic.Uint64 // the flush that covers its last write through the volatile cache; 0: none
	deferred   atomic.Pointer[deferredError]
}

// holder is whom shares count for.
func (n *Nexus) holder() string {
	if n.Holder != "" {
		return n.Holder
	}
	return n.Initiator
}

// grants reports whether a copy may use the logical unit by this nexus, to write if
// write is set, as far as the configuration goes.
func (n *Nexus) grants(write bool) bool {
	if n.Granted == nil {
		return true
	}
	mapped, readOnly := n.Granted()
	return mapped && !(write && readOnly)
}

// Identity returns the I_T nexus that n belongs to. It is the same at all servers of a
// logical unit: no two have portal groups of the same tag.
func (n *Nexus) Identity() reservation.Nexus {
	return reservation.Nexus{Initiator: n.Initiator, Target: n.Target, Port: n.TargetTag}
}

// ports returns the relative port identifiers of the target that n is with.
func (n *Nexus) ports() []uint16 {
	if n.Ports == nil {
		return []uint16{n.TargetTag}
	}
	return n.Ports()
}

// claimant is an initiator port together with who has proven to be behind it.
type claimant struct {
	initiator string
	proven    any
}

func (n *Nexus) claimant() claimant { return claimant{n.Initiator, n.Proven} }

// asker is whose the list identifiers of copies are: those of a claimant, but of one
// I_T nexus where nothing is proven.
type asker struct {
	claimant
	nexus reservation.Nexus // zero if the claimant has proven who it is
}

func (n *Nexus) asker() asker {
	if n.Proven != nil {
		return asker{claimant: n.claimant()}
	}
	return asker{n.claimant(), n.Identity()}
}

// registrant is an initiator port at a target, whichever of its ports.
type registrant struct{ initiator, target string }
