package target

import (
	"fmt"
	"net"
	"net/netip"
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
		if t.ruleFor(session.initiator) != nil {
			out = append(out, t)
		}
	}
	return out
}

func (s *Server) appendTarget(out []byte, session *Session, t *Target) []byte {
	out = pdu.AppendPair(out, "TargetName", t.Name())
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, tag := range t.config.PortalGroups {
		if g := s.mu.groups[tag]; g != nil {
			for _, addr := range g.addresses(session.local.Addr()) {
				out = pdu.AppendPair(out, "TargetAddress", fmt.Sprintf("%s,%d", addr, tag))
			}
		}
	}
	return out
}

// addresses returns the group's portals as an initiator that reached local can
// use them: a portal on every address is told as local, and one on loopback
// only to who is there himself.
func (g *portalGroup) addresses(local netip.Addr) []string {
	if len(g.Advertise) > 0 {
		return g.Advertise
	}
	var out []string
	seen := make(map[string]bool)
	for _, l := range g.listeners {
		if addr, ok := reachable(l.Addr(), local); ok && !seen[addr] {
			seen[addr] = true
			out = append(out, addr)
		}
	}
	return out
}

func reachable(portal net.Addr, local netip.Addr) (string, bool) {
	ap := addrPort(portal)
	switch {
	case ap.Addr().IsUnspecified():
		return netip.AddrPortFrom(local.WithZone(""), ap.Port()).String(), true
	case ap.Addr().IsLoopback() && !local.IsLoopback():
		return "", false
	}
	return netip.AddrPortFrom(ap.Addr().WithZone(""), ap.Port()).String(), true
}
