package target

import (
	"encoding/binary"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"lunar/target/pdu"
)

// directory makes the answers to SendTargets (RFC 7143 appendix C) on a goroutine of
// its own, because the work depends on how many targets there are and anybody may
// ask. A session keeps its answer, and what many sessions may see is made once, until
// something changes that it depends on.
type directory struct {
	changes atomic.Uint64 // of targets, of who may use them, and of portals; made under Server.mu

	sync.Mutex
	asked   []func() // at most one of each connection
	working bool

	// answers are those of the goroutine, as of changes, by what they depend on.
	answers map[outlook][]byte
	asOf    uint64
}

// outlook is all that an answer depends on besides the configuration.
type outlook struct {
	group    uint16 // that it came by
	all      bool   // it is told of others
	local    netip.Addr
	assisted bool
	targets  string // the places of those that are told, in four bytes each
}

// maxOutlooks bounds the answers that are kept; there is one for each portal group,
// local address and set of targets, and a claimed name chooses among the last.
const maxOutlooks = 64

// ask has the answer for a session made. then is called on the directory's goroutine.
func (s *Server) ask(session *Session, value string, then func(told)) {
	d := &s.directory
	d.Lock()
	defer d.Unlock()
	d.asked = append(d.asked, func() { then(s.tell(session, value)) })
	if !d.working {
		d.working = true
		s.running.Go(d.work)
	}
}

// work makes answers as long as some are asked for.
func (d *directory) work() {
	for {
		d.Lock()
		if len(d.asked) == 0 {
			d.working, d.asked = false, nil
			d.Unlock()
			return
		}
		next := d.asked[0]
		d.asked = d.asked[1:]
		d.Unlock()
		next()
	}
}

// tell answers SendTargets: all targets that the initiator may see in a discovery
// session, one by name, or the session's own.
func (s *Server) tell(session *Session, value string) told {
	s.mu.Lock()
	answer := told{value: value, asOf: s.directory.changes.Load()}
	targets, groups := slices.Clone(s.mu.order), maps.Clone(s.mu.groups)
	s.mu.Unlock()
	named, own := strings.ToLower(value), session.target
	var wants func(*Target) bool
	switch {
	case value == "All" && own == nil:
		wants = func(*Target) bool { return true }
	case value == "" && own != nil:
		wants = func(t *Target) bool { return t == own }
	case value != "All" && value != "":
		wants = func(t *Target) bool { return t.Name() == named && (own == nil || t == own) }
	default:
		answer.answer = pdu.AppendPair(nil, "SendTargets", pdu.ValueReject)
		return answer
	}
	look := outlook{group: session.portalGroup, all: session.discoversAll(), local: session.local.Addr(), assisted: session.assisted}
	places := []byte{}
	for i, t := range targets {
		if wants(t) && look.shows(t) && t.config.Load().ruleFor(session.initiator) != nil {
			places = binary.LittleEndian.AppendUint32(places, uint32(i))
		}
	}
	look.targets = string(places)
	answer.answer = s.directory.answer(look, targets, groups, s.elsewhere, answer.asOf)
	return answer
}

// discoversAll reports whether the session is told of portals and targets of other
// portal groups than its own: networks that do not know of each other often have one each.
func (s *Session) discoversAll() bool {
	return s.initiator.Proof.Proven() || s.settings.DiscoverAll
}

// shows reports whether there is a way to the target.
func (o *outlook) shows(t *Target) bool {
	return o.all || slices.Contains(t.config.Load().PortalGroups, o.group)
}

// answer returns the text for an outlook. Only the goroutine calls it.
func (d *directory) answer(look outlook, targets []*Target, groups map[uint16]*PortalGroup, elsewhere func(string) []Elsewhere, asOf uint64) []byte {
	if d.asOf != asOf || len(d.answers) >= maxOutlooks {
		d.asOf, d.answers = asOf, make(map[outlook][]byte)
	}
	if text, ok := d.answers[look]; ok {
		return text
	}
	text := []byte{}
	for at := []byte(look.targets); len(at) > 0; at = at[4:] {
		t := targets[binary.LittleEndian.Uint32(at)]
		text = look.appendTarget(text, t, groups)
		text = look.appendElsewhere(text, elsewhere(t.Name()))
	}
	d.answers[look] = text
	return text
}

func (o *outlook) appendTarget(out []byte, t *Target, groups map[uint16]*PortalGroup) []byte {
	out = pdu.AppendPair(out, "TargetName", t.Name())
	for _, tag := range t.config.Load().PortalGroups {
		if g := groups[tag]; g != nil && (o.all || tag == o.group) {
			for _, addr := range g.addresses(o.local, o.assisted) {
				out = pdu.AppendPair(out, "TargetAddress", fmt.Sprintf("%s,%d", addr, tag))
			}
		}
	}
	return out
}

// appendElsewhere adds the ways to a target by other servers, which are told over TCP alone.
func (o *outlook) appendElsewhere(out []byte, all []Elsewhere) []byte {
	for _, e := range all {
		if o.assisted || !o.all && e.Beside != o.group {
			continue
		}
		for _, addr := range e.Addresses {
			out = pdu.AppendPair(out, "TargetAddress", fmt.Sprintf("%s,%d", addr, e.Tag))
		}
	}
	return out
}

// addresses returns the group's portals as an initiator that reached local can
// use them: those of the transport that it came by, a portal on every address as
// local, and one on loopback only to who is there himself.
func (g *PortalGroup) addresses(local netip.Addr, assisted bool) []string {
	if len(g.Advertise) > 0 && !assisted {
		return g.Advertise
	}
	var out []string
	for _, portal := range g.addrs(assisted) {
		if addr, ok := reachable(portal, local); ok && !slices.Contains(out, addr) {
			out = append(out, addr)
		}
	}
	return out
}

func reachable(ap netip.AddrPort, local netip.Addr) (string, bool) {
	switch {
	case ap.Addr().IsUnspecified():
		return netip.AddrPortFrom(local.WithZone(""), ap.Port()).String(), true
	case ap.Addr().IsLoopback() && !local.IsLoopback():
		return "", false
	}
	return netip.AddrPortFrom(ap.Addr().WithZone(""), ap.Port()).String(), true
}

// directoryChanges implements node.
func (s *Server) directoryChanges() uint64 { return s.directory.changes.Load() }
