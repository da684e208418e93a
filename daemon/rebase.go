package daemon

import (
	"reflect"

	"lunar/conf"
	"lunar/scheduler"
)

// rules are those that are to be in force with a configuration. A file brings its own;
// changes of objects and of the cluster's configuration leave alone which rules were changed at run time, and which they
// do not concern.
func (r *request) rules(d *daemon, cfg *conf.Config) ruleSet {
	to := configuredSet(&cfg.QoS)
	if r.edit == nil && r.joint == nil {
		return to
	}
	from, live := configuredSet(&d.config.Load().QoS), d.rules().Live
	out := ruleSet{Overcommit: live.Overcommit}
	if from.Overcommit != to.Overcommit {
		out.Overcommit = to.Overcommit
	}
	out.Rules = rebased(from.Rules, to.Rules, live.Rules, func(r *scheduler.Rule) string { return r.Name })
	out.Groups = rebased(from.Groups, to.Groups, live.Groups, func(g *scheduler.Group) string { return g.Name })
	return out
}

// rebased makes of live what leads from one list to another.
func rebased[T any](from, to, live []T, name func(*T) string) (out []T) {
	index := func(all []T) map[string]*T {
		by := make(map[string]*T, len(all))
		for i := range all {
			by[name(&all[i])] = &all[i]
		}
		return by
	}
	before, after, now := index(from), index(to), index(live)
	for i := range live {
		n := name(&live[i])
		if reflect.DeepEqual(before[n], after[n]) {
			out = append(out, live[i])
		} else if after[n] != nil {
			out = append(out, *after[n])
		}
	}
	for i := range to {
		if n := name(&to[i]); now[n] == nil && !reflect.DeepEqual(before[n], after[n]) {
			out = append(out, to[i])
		}
	}
	return out
}
