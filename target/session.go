package target

import (
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"lunar/scheduler"
	"lunar/target/login"
	"lunar/target/pdu"
	"lunar/target/scsi"
)

// Session is one initiator's session with one target node, or a discovery
// session (RFC 7143 section 4.3). What the data path changes is in the core and
// belongs to its event thread; of the fields here only what the initiator sees
// changes after login. Addresses are those of the leading connection.
type Session struct {
	server      *Server
	target      *Target // nil in a discovery session
	initiator   Initiator
	alias       string
	isid        pdu.ISID
	tsih        uint16
	portalGroup uint16
	portal      any            // the net.Listener or Portal of the group that accepted it; nil: it did not come by one
	local       netip.AddrPort // the portal that it came through
	origin      origin         // of its packets, when it logged in
	remote      netip.AddrPort
	params      login.Params
	assisted    bool  // over iSER
	trusted     bool  // it has its place not as a stranger
	core        *core // what the connections share on their event thread
	settings    *Settings
	admittedBy  *TargetConfig // of target, when the session was made; nil in a discovery session
	replaces    uint16        // TSIH of the session that this one reinstates

	told told // on the session's thread

	view      atomic.Pointer[view] // changed by the connection's thread
	dismissed atomic.Bool          // it was asked to log out, or it is disconnected

	ended     chan struct{} // closed when nothing of the session runs any more
	endedOnce sync.Once
}

// Port is the initiator port name of SCSI (RFC 7143 section 4.2.7.1): the
// name that reservations and nexuses are keyed by.
func (s *Session) Port() string { return s.initiator.Name + ",i,0x" + s.isid.String() }

// flow is the session's use of a LUN as the scheduler knows it: what a user takes under
// a name that is not his own is not taken from others who claim it.
func (s *Session) flow(lun uint64) scheduler.Flow {
	f := scheduler.Flow{Initiator: s.initiator.Name, Target: s.target.Name(), LUN: lun}
	if !s.settings.Owners.own(s.initiator) {
		f.User = s.initiator.Proof.String()
	}
	return f
}

func (s *Session) nexus(m LUNMapping) *scsi.Nexus {
	name := ""
	if s.target != nil {
		name = s.target.Name()
	}
	n := &scsi.Nexus{
		LU: m.LU, LUN: scsi.EncodeLUN(uint64(m.LUN)), Initiator: s.Port(), Target: name,
		Holder: s.holderName(), Audit: s.audit, TargetTag: s.portalGroup, Ports: s.targetPorts, Map: s.visibleLUNs,
	}
	if s.initiator.Proof.Proven() {
		n.Proven = s.initiator.Proof
	}
	n.ReadOnly.Store(m.ReadOnly)
	n.Granted = s.granted(m)
	n.AwaitTasks = func(match func(*scsi.Command) bool, done func()) { s.core.awaitTasksOf(n, match, done) }
	n.EndTasks = func(except *scsi.Command, done func()) { s.core.endTasksOf(n, except, done) }
	return n
}

// audit logs what the initiator has changed for others.
func (s *Session) audit(what string, args ...any) { s.log().Info(what, args...) }

// targetPorts is the tags of the portal groups that lead to the target, in
// ascending order.
func (s *Session) targetPorts() []uint16 {
	if s.target == nil {
		return []uint16{s.portalGroup}
	}
	return slices.Sorted(slices.Values(s.target.config.Load().PortalGroups))
}
