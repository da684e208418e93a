package daemon

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"lunar/conf"
	"lunar/control"
	"lunar/daemon/volumes"
	"lunar/internal/iscsiname"
	"lunar/target"
	"lunar/target/scsi"
)

// drift is in what the daemon is other than the file says that it was started with, as
// that was read last: what the next start undoes.
func (d *daemon) drift() []control.Drift {
	out := []control.Drift{}
	add := func(kind string, what ...string) {
		for _, w := range what {
			out = append(out, control.Drift{Kind: kind, What: w})
		}
	}
	running := d.config.Load()
	if file := d.file.Load(); file != nil {
		for _, diff := range conf.Diff(running, file) {
			if !ruled(diff) {
				add("configuration", diff.String())
			}
		}
	}
	rules := d.rules()
	add("qos", changesOf(rules.Configured, rules.Live)...)
	add("access", d.accessDrift(running)...)
	if m := d.member; m != nil && m.whyBehind() != "" {
		add("cluster", m.whyBehind())
	}
	for _, drained := range d.Drains() {
		add("drain", describeDrain(running, drained))
	}
	return out
}

// ruled reports whether a difference is one of the QoS rules, of which those in force
// are told by name.
func ruled(d conf.Difference) bool {
	return d.Path[0] == "qos" && slices.Contains([]string{"rules", "groups", "overcommit"}, d.Path[1])
}

// accessDrift is where volumes are reached otherwise than their portal groups say.
func (d *daemon) accessDrift(cfg *conf.Config) (out []string) {
	units := d.LogicalUnits()
	slices.SortFunc(units, func(a, b *scsi.LogicalUnit) int { return cmp.Compare(a.Name(), b.Name()) })
	for i := range cfg.PortalGroups {
		g := &cfg.PortalGroups[i]
		for _, lu := range units {
			if lu.Shared() {
				continue
			}
			if now, file := lu.Access(g.Tag), volumes.AccessOf(g); now != file {
				out = append(out, fmt.Sprintf("%s: volume %s has %s%s, the file has %s%s", conf.Key("portal-groups", g.Name, "alua"), lu.Name(),
					now.State, preference(now), file.State, preference(file)))
			}
		}
	}
	return out
}

func preference(a scsi.PortAccess) string {
	if a.Preferred {
		return " and preferred"
	}
	return ""
}

// commented writes drift as the head of a configuration in YAML.
func commented(drift []control.Drift) string {
	if len(drift) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintln(&b, "# Changed at run time; the next start undoes it, unless it is in the file:")
	for _, d := range drift {
		fmt.Fprintf(&b, "# %s: %s\n", d.Kind, iscsiname.Printable(d.What))
	}
	return b.String()
}

// changesOf says what is new, gone and different.
func changesOf(before, after ruleSet) []string {
	out := []string{}
	for _, d := range conf.Diff(withRules(before), withRules(after)) {
		out = append(out, d.Change())
	}
	return out
}

// withRules is a configuration that has nothing else.
func withRules(s ruleSet) *conf.Config {
	return &conf.Config{QoS: conf.QoS{Overcommit: s.Overcommit, Rules: s.Rules, Groups: s.Groups}}
}

func describeDrain(cfg *conf.Config, d target.Drain) string {
	what := fmt.Sprintf("portal group %d", d.Tag) // gone from the configuration
	if d.Portal.IsValid() {
		what = "portal " + d.Portal.String()
	} else if i := slices.IndexFunc(cfg.PortalGroups, func(g conf.PortalGroup) bool { return g.Tag == d.Tag }); i >= 0 {
		what = conf.Key("portal-groups", cfg.PortalGroups[i].Name)
	}
	if d.Redirect == "" {
		return what + ": logins are refused until later"
	}
	return what + ": logins are sent to " + d.Redirect
}
