package scsi

import (
	"slices"

	"lunar/target/scsi/sense"
)

// attachAttention is what a new nexus is told first. A nexus is new to the
// logical unit, so nothing more specific than "power on or reset" is known to
// be true of what happened before it.
const attachAttention = sense.ASCReset

// Attach makes n one of the logical unit's nexuses. Its first command is told
// so by a unit attention, that of a remote one by the other server.
func (lu *LogicalUnit) Attach(n *Nexus) {
	if !n.Remote {
		n.Attention(attachAttention)
	}
	lu.mu.Lock()
	defer lu.mu.Unlock()
	lu.mu.nexuses[n] = struct{}{}
	lu.recognize()
	lu.restrict(n)
	lu.inherit(n)
	lu.remind(n)
}

// Detach ends what Attach began. The nexus's commands have ended.
func (lu *LogicalUnit) Detach(n *Nexus) {
	lu.ClearACA(n)
	lu.mu.Lock()
	defer lu.mu.Unlock()
	delete(lu.mu.nexuses, n)
	n.ended.Store(true)
	if !n.Remote || n.Tenure == lu.mu.tenure { // else another nexus of the session has what there is, or will
		lu.dropReserve(n.Identity())
		lu.mu.owed = slices.DeleteFunc(slices.Clone(lu.mu.owed), func(o Owed) bool { return o.Nexus == n.Identity() })
	}
	lu.leave(n)
	if n.passage != nil {
		n.passage.end()
	}
}

// Attached returns the nexus of an initiator port with a port of a target, or nil.
func (lu *LogicalUnit) Attached(initiator, target string, tag uint16) *Nexus {
	lu.mu.Lock()
	defer lu.mu.Unlock()
	for n := range lu.mu.nexuses {
		if n.Initiator == initiator && n.Target == target && n.TargetTag == tag {
			return n
		}
	}
	return nil
}

// ResetState returns what commands can change to its defaults, as a logical
// unit reset does (SAM-5 clause 6.3.3), and ends RESERVE and any ACA condition; the capacity,
// persistent reservations, access states, the medium where it is and a sanitize
// operation stay.
func (lu *LogicalUnit) ResetState() {
	lu.endReserve()
	lu.ClearACA(nil)
	lu.update(func(s *State) {
		before := *s
		*s = *lu.defaultState(s)
		s.Blocks, s.Ejected, s.Sanitize = before.Blocks, before.Ejected, before.Sanitize
		lu.allowRemoval()
	})
	lu.resave()
}
