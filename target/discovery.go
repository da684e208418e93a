package target

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"lunar/target/pdu"
)

// appendTargets answers SendTargets (RFC 7143 appendix C): all targets that
// the initiator may see in a discovery session, one by name, or the session's
// own.
func (s *Server) appendTargets(out []byte, session *Session, value string) []byte {
	switch {
	case value == "All" && session.target == nil:
		for _, t := range s.visible(session) {
			out = s.appendTarget(out, session, t)
		}
	case value == "" && session.target != nil:
		out = s.appendTarget(out, session, session.target)
	case value != "All" && value != "":
		for _, t := range s.visible(session) {
			if t.Name() == strings.ToLower(value) && (session.target == nil || session.target == t) {
				out = s.appendTarget(out, session, t)
			}
		}
	default:
		out = pdu.AppendPair(out, "SendTargets", pdu.ValueReject)
	}
	return out
}

// visible returns the targets that have a rule for the initiator.
func (s *Server) visible(session *Session) []*Target {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*Target
	for _, t := range s.mu.order {
		if t.config.Load().ruleFor(session.initiator) != nil {
			out = append(out, t)
		}
	}
	return out
}

func (s *Server) appendTarget(out []byte, session *Session, t *Target) []byte {
	out = pdu.AppendPair(out, "TargetName", t.Name())
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, tag := range t.config.Load().PortalGroups {
		if g := s.mu.groups[tag]; g != nil {
			for _, addr := range g.addresses(session.local.Addr(), session.assisted) {
				out = pdu.AppendPair(out, "TargetAddress", fmt.Sprintf("%s,%d", addr, tag))
			}
		}
	}
	return out
}

// addresses returns the group's portals as an initiator that reached local can
// use them: those of the transport that it came by, a portal on every address as
// local, and one on loopback only to who is there himself.
func (g *portalGroup) addresses(local netip.Addr, assisted bool) []string {
	if len(g.Advertise) > 0 && !assisted {
		return g.Advertise
	}
	var out []string
	for _, portal := range g.ends(assisted) {
		if addr, ok := reachable(portal, local); ok && !slices.Contains(out, addr) {
			out = append(out, addr)
		}
	}
	return out
}

// ends are the addresses that the group listens on by one transport.
func (g *portalGroup) ends(assisted bool) (out []netip.AddrPort) {
	if assisted {
		for _, p := range g.Assisted {
			out = append(out, p.Addr())
		}
		return out
	}
	for _, l := range g.listeners {
		out = append(out, addrPort(l.Addr()))
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
