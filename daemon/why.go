package daemon

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"lunar/conf"
	"lunar/control"
	"lunar/control/server"
	"lunar/scheduler"
	"lunar/target"
	"lunar/target/login"
)

// mostWhyUsers bounds the CHAP users that one answer judges.
const mostWhyUsers = 64

// Why implements server.Source.
func (s *source) Why(q control.WhyQuery) (control.Why, error) {
	out := control.Why{
		Initiator: server.Sayable(strings.ToLower(q.Initiator)), Target: server.Sayable(strings.ToLower(q.Target)),
		Users: []control.WhyUser{}, LUNs: []control.WhyLUN{}, Sessions: []control.WhySession{}, Failures: []control.WhyFailure{},
	}
	cfg, failures := s.daemon.config.Load(), s.daemon.Failures(q.Initiator)
	s.tellPresence(&out, q.Initiator, failures)
	from, err := s.addressOf(&q, failures)
	if err != nil {
		return out, err
	}
	if from.IsValid() {
		out.Address = from.String()
	}
	claims, err := s.claims(cfg, &q, from)
	if err != nil {
		return out, err
	}
	w := s.judgeClaims(claims, q.User)
	w.tell(&out, cfg)
	if out.Admitted {
		s.tellLUNs(&out, &w, cfg)
	}
	return out, nil
}

// tellPresence says which sessions an initiator has, and what of it failed.
func (s *source) tellPresence(out *control.Why, initiator string, failures []target.Failure) {
	for _, n := range s.daemon.Sessions() {
		if strings.EqualFold(n.Initiator, initiator) {
			out.Sessions = append(out.Sessions, control.WhySession{
				TSIH: int(n.TSIH), Target: n.Target, User: server.Sayable(n.Proof.String()), Address: n.Remote.String(), Portal: n.Local.String(),
			})
		}
	}
	for _, f := range failures {
		out.Failures = append(out.Failures, control.WhyFailure{
			At: f.At, Target: server.Sayable(f.Target), User: server.Sayable(f.User), Address: f.Remote.String(), Portal: f.Local.String(), Reason: server.Sayable(f.Reason),
		})
	}
}

// mistaken refuses a query.
func mistaken(format string, args ...any) error {
	return &control.Refusal{What: "the question makes no sense", Reasons: []control.Reason{{Text: fmt.Sprintf(format, args...)}}}
}

// addressOf is where the initiator comes from; invalid: it is not known.
func (s *source) addressOf(q *control.WhyQuery, failures []target.Failure) (from netip.Addr, err error) {
	if q.Address != "" {
		if from, err = netip.ParseAddr(q.Address); err != nil {
			return from, mistaken("address: found %q, expected an IP address", q.Address)
		}
		return from.Unmap().WithZone(""), nil
	}
	for _, n := range s.daemon.Sessions() {
		if strings.EqualFold(n.Initiator, q.Initiator) {
			from = n.Remote.Addr()
		}
	}
	if !from.IsValid() && len(failures) > 0 {
		from = failures[0].Remote.Addr()
	}
	return from.Unmap().WithZone(""), nil
}

// claims are the logins that the query may be about: one for each portal group, or portal.
func (s *source) claims(cfg *conf.Config, q *control.WhyQuery, from netip.Addr) (claims []target.Claim, err error) {
	claim := target.Claim{Initiator: target.Initiator{Name: strings.ToLower(q.Initiator), Addr: from}, Target: q.Target}
	if q.Portal != "" {
		d, ok := drainOf(cfg, s.daemon.Server, q.Portal)
		if !ok {
			return nil, mistaken("portal: found %q, expected the name of a portal group or address:port of a portal; there are %s", q.Portal, strings.Join(groupNames(cfg), ", "))
		}
		claim.Group, claim.Local = d.Tag, d.Portal
		return []target.Claim{s.at(claim)}, nil
	}
	t := cfg.Target(strings.ToLower(q.Target))
	for i := range cfg.PortalGroups {
		if g := &cfg.PortalGroups[i]; t == nil || slices.Contains(t.PortalGroups, g.Name) {
			claim.Group = g.Tag
			claims = append(claims, s.at(claim))
		}
	}
	return claims, nil
}

// at gives a claim an address of its portal group, if it has none.
func (s *source) at(c target.Claim) target.Claim {
	if addrs := s.daemon.Addrs(c.Group); !c.Local.IsValid() && len(addrs) > 0 {
		c.Local = addrs[0].(*net.TCPAddr).AddrPort()
	}
	return c
}

func groupNames(cfg *conf.Config) (names []string) {
	for i := range cfg.PortalGroups {
		names = append(names, cfg.PortalGroups[i].Name)
	}
	return names
}

// why is the judgement of one claim.
type why struct {
	target.Claim
	target.Judgement
	users []control.WhyUser
}

// judgeClaims judges claims until one would be admitted, else the first.
func (s *source) judgeClaims(claims []target.Claim, user string) (first why) {
	for i, c := range claims {
		w := s.judgeClaim(c, user)
		if i == 0 || w.Fault == nil {
			first = w
		}
		if w.Fault == nil {
			break
		}
	}
	return first
}

// judgeClaim judges a claim with a user, or with every one that it may be. Where nobody
// has to authenticate, what is proven by it decides nothing that a name does not.
func (s *source) judgeClaim(c target.Claim, user string) why {
	w := why{Claim: c, Judgement: s.daemon.Judge(c)}
	if w.Rule == nil || w.By == target.ByRedirection || len(w.Rule.Auth.Incoming) == 0 {
		return w
	}
	for _, proof := range proofsOf(&w.Rule.Auth, user) {
		c.Initiator.Proof = proof
		j := s.daemon.Judge(c)
		u := control.WhyUser{User: server.Sayable(proof.String()), Admitted: j.Fault == nil}
		if j.Fault != nil {
			u.Reason = server.Sayable(j.Fault.Reason)
		}
		if w.users = append(w.users, u); w.Fault != nil && (j.Fault == nil || len(w.users) == 1) {
			w.Claim, w.Judgement = c, j
		}
	}
	return w
}

// proofsOf are the users that a query may mean.
func proofsOf(auth *login.Auth, user string) (proofs []login.Proof) {
	switch group, name, both := strings.Cut(user, "/"); {
	case both:
		return []login.Proof{{Group: group, User: name}}
	case user != "":
		return []login.Proof{{Group: auth.Group, User: user}}
	}
	for _, c := range auth.Incoming[:min(len(auth.Incoming), mostWhyUsers)] {
		proofs = append(proofs, login.Proof{Group: auth.Group, User: c.User})
	}
	return proofs
}

// advices are what to do about each step that decides.
var advices = map[target.Step]string{
	target.ByName:           "correct InitiatorName of the initiator (Linux: /etc/iscsi/initiatorname.iscsi)",
	target.ByTarget:         "compare the name with lunar target list; names are compared in lower case",
	target.ByPortalGroup:    "add the portal group to portal-groups of the target, or use another portal",
	target.ByAccessRule:     "add the name or network to a rule of access of the target, or to initiators and networks of its auth-group",
	target.ByRedirection:    "end the drain (lunar drain PORTAL --off) or remove redirect or moved, unless the initiator is to go elsewhere",
	target.ByAuthentication: "set the CHAP user and secret of the auth-group at the initiator",
	target.ByOwner:          "add the name to initiators of the CHAP user, or use another name or user",
	target.ByLimits:         "raise server.limits.sessions, or list the initiator's network in server.limits.known-networks",
}

// tell writes the judgement down.
func (w *why) tell(out *control.Why, cfg *conf.Config) {
	if i := slices.IndexFunc(cfg.PortalGroups, func(g conf.PortalGroup) bool { return g.Tag == w.Group }); i >= 0 {
		out.PortalGroup = cfg.PortalGroups[i].Name
	}
	if w.Rule != nil {
		out.Rule, out.AuthGroup = fmt.Sprintf("rule %d of %d: %s", w.Number, len(w.Config.Access), whom(w.Rule)), w.Rule.Auth.Group
		out.CHAP = !w.Rule.Auth.AllowNone
	}
	out.Users = append(out.Users, w.users...)
	if out.Admitted = w.Fault == nil; out.Admitted {
		return
	}
	out.Decides, out.Advice = string(w.By), advices[w.By]
	out.Reason = server.Sayable(cmp.Or(w.Absent, w.Fault.Reason))
	out.Told = fmt.Sprintf("%04x, %s", uint16(w.Fault.Status()), w.Fault.Status())
}

// whom says whom a rule is about.
func whom(r *target.AccessRule) string {
	parts := []string{}
	if len(r.Initiators) > 0 {
		parts = append(parts, strings.Join(r.Initiators, ", "))
	}
	if len(r.Networks) > 0 {
		var nets []string
		for _, n := range r.Networks {
			nets = append(nets, n.String())
		}
		parts = append(parts, "from "+strings.Join(nets, ", "))
	}
	return cmp.Or(strings.Join(parts, " "), "everyone")
}

// tellLUNs says what the initiator would see, and by which QoS rules.
func (s *source) tellLUNs(out *control.Why, w *why, cfg *conf.Config) {
	policy := s.daemon.QoSPolicy()
	for _, l := range w.Rule.LUNs {
		lun := control.WhyLUN{LUN: int(l.LUN), Volume: l.LU.Name(), ReadOnly: l.ReadOnly || l.LU.Store().Info().ReadOnly, Rules: []string{}}
		if v := cfg.Volume(lun.Volume); v != nil && v.ReadOnly {
			lun.ReadOnly = true
		}
		for _, e := range policy.Resolve(scheduler.Flow{Initiator: w.Initiator.Name, Target: w.Config.Name, LUN: uint64(l.LUN)}) {
			if e.Key != "" && e.Rule != nil {
				lun.Rules = append(lun.Rules, e.Rule.Name)
			}
		}
		out.LUNs = append(out.LUNs, lun)
	}
}
