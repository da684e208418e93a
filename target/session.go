package target

import (
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"lunar/internal/places"
	"lunar/scheduler"
	"lunar/target/login"
	"lunar/target/pdu"
	"lunar/target/scsi"
)

// Session is one initiator's session with one target node, or a discovery
// session (RFC 7143 section 4.3). What the data path changes is in its sessionState and
// belongs to its event thread; of the fields here only what the initiator sees
// changes after login. Addresses are those of the leading connection.
type Session struct {
	node        node
	target      *Target // nil in a discovery session
	initiator   Initiator
	alias       string
	isid        pdu.ISID
	tsih        uint16
	portalGroup uint16
	portal      Portal         // of the group, that accepted it; nil: it did not come by one
	local       netip.AddrPort // the portal that it came through
	origin      origin         // of its packets, when it logged in
	remote      netip.AddrPort
	params      login.Params
	assisted    bool          // over iSER
	trusted     bool          // it has its place not as a stranger
	state       *sessionState // what the connections share on their event thread
	settings    *Settings
	admittedBy  *TargetConfig // of target, when the session was made; nil in a discovery session
	replaces    uint16        // TSIH of the session that this one reinstates

	told told // on the session's thread

	view            atomic.Pointer[view] // changed by the connection's thread
	logoutRequested atomic.Bool          // it was asked to log out, or it is disconnected

	ended     chan struct{} // closed when nothing of the session runs any more
	endedOnce sync.Once
}

// Port is the initiator port name of SCSI (RFC 7143 section 4.2.7.1): the
// name that reservations and nexuses are keyed by.
func (s *Session) Port() string { return s.initiator.Name + ",i,0x" + s.isid.String() }

// flow is the session's use of a LUN as the scheduler knows it.
func (s *Session) flow(lun uint64) scheduler.Flow {
	return flowOf(&s.initiator, s.settings.Owners, s.target.Name(), lun)
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
	if m.LU != nil && m.LU.Shared() {
		n.Ports = s.sharedPorts
	}
	if s.initiator.Proof.Proven() {
		n.Proven = s.initiator.Proof
	}
	n.ReadOnly.Store(m.ReadOnly)
	n.Granted = s.granted(m)
	n.AwaitTasks = func(match func(*scsi.Command) bool, done func()) { s.state.awaitTasksOf(n, match, done) }
	n.EndTasks = func(except *scsi.Command, done func()) { s.state.endTasksOf(n, except, done) }
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

// sharedPorts is the same with the portal groups of other servers.
func (s *Session) sharedPorts() []uint16 {
	tags := s.targetPorts()
	for _, e := range s.node.elsewhere(s.target.Name()) {
		tags = append(tags, e.Tag)
	}
	slices.Sort(tags)
	return slices.Compact(tags)
}

// log returns the logger that names the session in every line.
func (n *Session) log() *slog.Logger { return n.named(n.journal(), n.remote) }

// journal is the log for what the initiator brings about.
func (n *Session) journal() *slog.Logger {
	return n.node.lines().Logger(places.Host(n.initiator.Addr).String(), n.trusted)
}

// logOf is the same for what concerns one connection.
func (n *Session) logOf(c *Connection) *slog.Logger {
	l := n.named(n.journal(), c.remote)
	if c.shared {
		l = l.With("cid", c.cid)
	}
	return l
}

func (n *Session) named(l *slog.Logger, remote netip.AddrPort) *slog.Logger {
	l = l.With("initiator", n.initiator.Name, "address", remote.String(), "tsih", n.tsih)
	if n.target != nil {
		return l.With("target", n.target.Name())
	}
	return l.With("target", "(discovery)")
}

// sameNexus reports whether both sessions join the same initiator port and
// target portal group. Discovery sessions have no nexus.
func (o *Session) sameNexus(n *Session) bool {
	return o.target != nil && o.target == n.target && o.portalGroup == n.portalGroup &&
		o.isid == n.isid && o.initiator.Name == n.initiator.Name
}

// trespasses tells why a session may not use a logical unit: its initiator port is
// registered there by another user, who may still come to the target and would find
// somebody else behind the reservation. A name that is a user's own needs no memory.
func (n *Session) trespasses(lu *scsi.LogicalUnit) *login.Error {
	who, known := lu.Registrant(n.Port(), n.target.Name()).(login.Proof)
	if !known || who == n.initiator.Proof || n.node.inForce().Owners.own(n.initiator) {
		return nil
	}
	comes := func(r AccessRule) bool { return r.Auth.Has(who) }
	if !slices.ContainsFunc(n.target.config.Load().Access, comes) {
		return nil
	}
	return login.Errorf(pdu.LoginAuthorizationFailure, "the initiator port is registered with volume %s by user %q: give the name to one of them by initiators of chap, or clear the reservations", lu.Name(), who)
}

// granted is scsi.Nexus.Granted of a mapping: it holds the target's configuration of
// now against it. A target that is removed grants nothing.
func (s *Session) granted(m LUNMapping) func() (mapped, readOnly bool) {
	if s.target == nil || m.LU == nil {
		return nil
	}
	type answer struct {
		config           *TargetConfig // that it is about
		settings         *Settings
		mapped, readOnly bool
	}
	var last atomic.Pointer[answer]
	return func() (mapped, readOnly bool) {
		config, settings, a := s.target.config.Load(), s.node.inForce(), last.Load()
		if a == nil || a.config != config || a.settings != settings {
			a = &answer{config: config, settings: settings}
			a.mapped, a.readOnly = config.grants(s.initiator, settings.Owners, m)
			last.Store(a)
		}
		return a.mapped, a.readOnly
	}
}

// holderName is the name of the holder, whom shares of a logical unit's resources
// count for, too.
func (n *Session) holderName() string {
	if p := n.initiator.Proof; p.Proven() {
		return "user " + p.String()
	}
	return places.Host(n.initiator.Addr).String()
}

// origin is where a connection's packets come from; below 0: unknown.
type origin struct {
	node int // that the network device is attached to, as the kernel numbers it
	cpu  int // that the kernel received them on last
}

var nowhere = origin{-1, -1}

// told is the answer that a session was given to a value of SendTargets.
type told struct {
	value  string
	answer []byte
	asOf   uint64
}

// remembered returns the answer that the session was given, if it still holds.
func (s *Session) remembered(value string) ([]byte, bool) {
	t := &s.told
	return t.answer, t.answer != nil && t.value == value && t.asOf == s.node.directoryChanges()
}
