package target

import (
	"net/netip"
	"sync"

	"lunar/target/login"
	"lunar/target/pdu"
	"lunar/target/scsi"
)

// Session is one initiator's session with one target node, or a discovery
// session (RFC 7143 section 4.3). It has one connection: MaxConnections is
// negotiated to 1. What the data path changes is in the Connection and belongs
// to its event thread; the fields here do not change after login.
type Session struct {
	server      *Server
	target      *Target // nil in a discovery session
	initiator   Initiator
	alias       string
	isid        pdu.ISID
	tsih        uint16
	cid         uint16
	portalGroup uint16
	local       netip.AddrPort // the portal that it came through
	nic         int            // kernel's number of the NUMA node of that address's device, below 0: unknown
	remote      netip.AddrPort
	params      login.Params
	assisted    bool // over iSER
	rule        *AccessRule
	conn        *Connection
	replaces    uint16 // TSIH of the session that this one reinstates

	ended     chan struct{} // closed when nothing of the session runs any more
	endedOnce sync.Once
}

// Port is the initiator port name of SCSI (RFC 7143 section 4.2.7.1): the
// name that reservations and nexuses are keyed by.
func (s *Session) Port() string { return s.initiator.Name + ",i,0x" + s.isid.String() }

// nexuses returns the I_T_L nexuses that the access rule grants.
func (s *Session) nexuses() []*scsi.Nexus {
	if s.rule == nil {
		return nil
	}
	out := make([]*scsi.Nexus, 0, len(s.rule.LUNs))
	for _, m := range s.rule.LUNs {
		out = append(out, s.nexus(m))
	}
	return out
}

func (s *Session) nexus(m LUNMapping) *scsi.Nexus {
	name := ""
	if s.target != nil {
		name = s.target.Name()
	}
	return &scsi.Nexus{
		LU: m.LU, LUN: scsi.EncodeLUN(uint64(m.LUN)), Initiator: s.Port(), Target: name,
		TargetTag: s.portalGroup, ReadOnly: m.ReadOnly, Map: s.visibleLUNs,
	}
}

// visibleLUNs is the LUN numbers that REPORT LUNS tells this initiator.
func (s *Session) visibleLUNs() []uint64 {
	if s.rule == nil {
		return nil
	}
	luns := make([]uint64, 0, len(s.rule.LUNs))
	for _, m := range s.rule.LUNs {
		luns = append(luns, uint64(m.LUN))
	}
	return luns
}
