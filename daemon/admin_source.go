package daemon

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"lunar/cluster/revisions"
	"lunar/conf"
	"lunar/control"
	"lunar/control/server"
	"lunar/scheduler"
	"lunar/target"
)

// Running implements server.Source: the rules are those in force.
func (s *source) Running() (control.RunningConfig, error) {
	cfg := *s.daemon.config.Load()
	live := s.daemon.rules().Live
	cfg.QoS.Rules, cfg.QoS.Groups, cfg.QoS.Overcommit = live.Rules, live.Groups, live.Overcommit
	printed, err := conf.Print(&cfg)
	if err != nil {
		return control.RunningConfig{}, err
	}
	text, err := s.written()
	if err != nil { // it has what commands do not change
		text = "# " + strings.ReplaceAll(err.Error(), "\n", "; ") + "\n"
	}
	return control.RunningConfig{YAML: commented(s.daemon.drift()) + string(printed), Text: text}, nil
}

// written is the text that is running, without secrets, with what the cluster's configuration has.
func (s *source) written() (string, error) {
	running, joint := s.changes.texts.Load().running, s.daemon.joint()
	if joint == nil {
		return shownText(running)
	}
	own, err := running.parse()
	if err != nil {
		return "", conflict("the text of the configuration: " + err.Error())
	}
	tree, err := joint.with(own.Tree())
	if err == nil {
		own, err = own.Become(tree)
	}
	if err != nil {
		return "", conflict("the text with that of the cluster: " + err.Error())
	}
	text, err := shownText(parsedDocument(own))
	return fmt.Sprintf("# With %s, which lunar cluster config show has alone.\n%s", revisions.Name(joint.Revision), text), err
}

// Kick implements server.Source.
func (s *source) Kick(k control.Kick) (int, error) {
	if k.Initiator == "" && k.Session == 0 {
		return 0, &control.Refusal{What: "no session was ended", Reasons: []control.Reason{{Text: "found neither initiator nor session, expected one of them"}}}
	}
	n := s.daemon.Kick(func(n target.SessionStats) bool {
		return (k.Initiator == "" || scheduler.Matches(k.Initiator, n.Initiator)) && (k.Session == 0 || int(n.TSIH) == k.Session)
	})
	if n == 0 {
		return 0, &control.Refusal{What: "no session was ended", State: true, Reasons: []control.Reason{{Text: "found none that matches and was not asked to log out before"}}}
	}
	return n, nil
}

// Drain implements server.Source.
func (s *source) Drain(k control.Drain) (control.Drained, error) {
	refuse := func(text string) (control.Drained, error) {
		return control.Drained{}, &control.Refusal{What: "nothing was changed for portal " + k.Portal, Reasons: []control.Reason{{Text: text}}}
	}
	cfg := s.daemon.config.Load()
	d, ok := drainOf(cfg, s.daemon.Server, k.Portal)
	if !ok {
		return refuse("found no portal group of that name and no portal of that address")
	}
	if k.To != "" {
		if d.Redirect, ok = conf.ParseRedirect(k.To); !ok {
			return refuse(fmt.Sprintf("to: found %q, expected %s", k.To, conf.WantRedirect))
		}
	}
	if d.Redirect != "" && !k.Off {
		if where := s.ownDrained(cfg, d); where != "" {
			return refuse(fmt.Sprintf("to: found %q, which is %s and drained itself: initiators would go round in circles", k.To, where))
		}
	}
	out := control.Drained{}
	switch {
	case !k.Off:
		out.Sessions = s.daemon.Drain(d)
	case !s.daemon.Undrain(d):
		return refuse("it is not being drained")
	}
	out.Draining = s.Drains().Draining
	return out, nil
}

// Drains implements server.Source.
func (s *source) Drains() control.Drained {
	cfg, out := s.daemon.config.Load(), control.Drained{Draining: []string{}}
	for _, d := range s.daemon.Drains() {
		out.Draining = append(out.Draining, describeDrain(cfg, d))
	}
	return out
}

// ownDrained is the portal of this server that a drain sends initiators to, if it is
// drained, too; empty: it is none.
func (s *source) ownDrained(cfg *conf.Config, d target.Drain) string {
	to, err := netip.ParseAddrPort(d.Redirect)
	if err != nil {
		return "" // a name: who it is the initiators find out
	}
	own := machineAddresses()
	drains := append(s.daemon.Drains(), d)
	for _, g := range cfg.PortalGroups {
		for _, a := range s.daemon.Addrs(g.Tag) {
			its, err := netip.ParseAddrPort(a.String())
			if err != nil || its.Port() != to.Port() {
				continue
			}
			is := its.Addr().Unmap() == to.Addr().Unmap() || its.Addr().IsUnspecified() && own[to.Addr().Unmap()]
			if is && slices.ContainsFunc(drains, func(d target.Drain) bool {
				return d.Tag == g.Tag && (!d.Portal.IsValid() || d.Portal == netip.AddrPortFrom(to.Addr().Unmap(), to.Port()))
			}) {
				return "portal " + its.String() + " of group " + g.Name
			}
		}
	}
	return ""
}

// machineAddresses are those of this machine.
func machineAddresses() map[netip.Addr]bool {
	out := map[netip.Addr]bool{}
	all, _ := net.InterfaceAddrs()
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			out[p.Addr().Unmap()] = true
		}
	}
	return out
}

// drainOf finds a portal group by its name, or a portal by its address.
func drainOf(cfg *conf.Config, s *target.Server, portal string) (target.Drain, bool) {
	if g := cfg.PortalGroup(portal); g != nil {
		return target.Drain{Tag: g.Tag}, true
	}
	at, err := netip.ParseAddrPort(portal)
	if err != nil {
		return target.Drain{}, false
	}
	at = netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
	for _, g := range cfg.PortalGroups {
		if slices.ContainsFunc(s.Addrs(g.Tag), func(a net.Addr) bool {
			its, err := netip.ParseAddrPort(a.String())
			return err == nil && its.Port() == at.Port() && (its.Addr().IsUnspecified() || its.Addr().Unmap() == at.Addr())
		}) {
			return target.Drain{Tag: g.Tag, Portal: at}, true
		}
	}
	return target.Drain{}, false
}

// Apply implements server.Source.
func (s *source) Apply(by server.Asker, f control.File) (control.Applied, error) {
	applied, err := s.changes.file(by, f)
	if !f.DryRun {
		s.daemon.noteApply(err)
	}
	return applied, err
}
