package daemon

import (
	"fmt"
	"reflect"

	"lunar/cluster/revisions"
	"lunar/conf"
	"lunar/conf/edit"
	"lunar/control"
	"lunar/control/server"
	"lunar/daemon/volumes"
	"lunar/scheduler"
	"lunar/target/scsi"
)

// Save implements server.Source.
func (s *source) Save(by server.Asker, save control.Save) (control.Changed, error) {
	out, err := s.changes.save(by, save)
	s.daemon.noteChange(save.DryRun, err)
	return out, err
}

func (a *applier) save(by server.Asker, save control.Save) (control.Changed, error) {
	if err := a.lock(by); err != nil {
		return control.Changed{}, err
	}
	defer a.changing.Unlock()
	t := a.texts.Load()
	if t.file == nil {
		return control.Changed{}, conflict("the server was started without a configuration file")
	}
	running, err := t.running.parse()
	if err != nil {
		return control.Changed{}, conflict(err.Error())
	}
	file, err := t.file.parse()
	if err != nil {
		return control.Changed{}, conflict(err.Error())
	}
	if err := a.jointRules(); err != nil {
		return control.Changed{}, err
	}
	want, err := a.withRules(running.Tree())
	if err != nil {
		return control.Changed{}, conflict(err.Error())
	}
	want, warnings, err := a.withAccess(want)
	if err != nil {
		return control.Changed{}, conflict(err.Error())
	}
	d, err := file.Become(want)
	if err != nil {
		return control.Changed{}, conflict(err.Error())
	}
	drift := a.daemon.drift()
	if string(d.Text()) == string(t.file.text) {
		drift = nil
	}
	out, err := a.whole(by, "save", d, control.Permissions{DryRun: save.DryRun})
	for _, one := range drift {
		if one.Kind != "drain" && err == nil {
			out.Changes = append(out.Changes, fmt.Sprintf("%s: %s", one.Kind, one.What))
		}
	}
	out.Warnings = append(out.Warnings, warnings...)
	return out, err
}

// jointRules refuses to save rules of the cluster's configuration that were changed on this node:
// the node's file is not where they are.
func (a *applier) jointRules() error {
	c := a.daemon.joint()
	r := &control.Refusal{What: editRefused, State: true}
	for _, d := range conf.Diff(withRules(configuredSet(&a.daemon.config.Load().QoS)), withRules(a.daemon.rules().Live)) {
		if c.has(d.Path) {
			r.Reasons = append(r.Reasons, control.Reason{Place: conf.Key(d.Path...), Text: fmt.Sprintf(
				"found a change of what is in %s, which all nodes have: make it there (lunar cluster config show > FILE, lunar apply --cluster FILE), or go back to what the file says (lunar apply %s)", revisions.Name(c.Revision), a.serve.Config)})
		}
	}
	if r.Reasons == nil {
		return nil
	}
	return r
}

// withRules is a tree with the rules of the QoS that are in force.
func (a *applier) withRules(tree edit.Object) (edit.Object, error) {
	rules := a.daemon.rules()
	from, to := configuredSet(&a.daemon.config.Load().QoS), rules.Live
	text, err := conf.Print(withRules(to))
	if err != nil {
		return nil, err
	}
	printed, err := edit.Parse(text)
	if err != nil {
		return nil, err
	}
	if from.Overcommit != to.Overcommit {
		if tree, err = edit.Set(tree, edit.Object{"overcommit": to.Overcommit}, "qos"); err != nil {
			return nil, err
		}
	}
	if tree, err = withNamed(tree, printed.Tree(), "rules", from.Rules, to.Rules, func(r *scheduler.Rule) string { return r.Name }); err != nil {
		return nil, err
	}
	return withNamed(tree, printed.Tree(), "groups", from.Groups, to.Groups, func(g *scheduler.Group) string { return g.Name })
}

// withNamed is a tree with what has changed in a list of the QoS, as printed has it.
func withNamed[T any](tree, printed edit.Object, key string, from, to []T, name func(*T) string) (out edit.Object, err error) {
	before, after := map[string]*T{}, map[string]*T{}
	for i := range from {
		before[name(&from[i])] = &from[i]
	}
	for i := range to {
		n := name(&to[i])
		if after[n] = &to[i]; reflect.DeepEqual(before[n], after[n]) {
			continue
		}
		value, _ := edit.Get(printed, "qos", key, n)
		if tree, err = edit.Set(tree, withoutDefaults(value), "qos", key, n); err != nil {
			return nil, err
		}
	}
	for n := range before {
		if after[n] == nil {
			if tree, err = edit.Remove(tree, "qos", key, n); err != nil {
				return nil, err
			}
		}
	}
	return tree, nil
}

// withoutDefaults is a rule without what a file need not say.
func withoutDefaults(rule any) any {
	out, err := edit.Merge(edit.Object{}, rule)
	if err != nil {
		return rule
	}
	for key, word := range map[string]string{"weight": "1", "class": "medium"} {
		if edit.Same(out[key], word) {
			delete(out, key)
		}
	}
	return out
}

// withAccess is a tree with the access states that volumes have, where all have the same
// through a portal group: a file has but one.
func (a *applier) withAccess(tree edit.Object) (_ edit.Object, warnings []string, err error) {
	cfg := a.daemon.config.Load()
	for i := range cfg.PortalGroups {
		g := &cfg.PortalGroups[i]
		states := map[scsi.PortAccess]bool{}
		for _, lu := range a.daemon.LogicalUnits() {
			if lu.Shared() {
				continue
			}
			states[lu.Access(g.Tag)] = true
		}
		switch {
		case len(states) > 1:
			warnings = append(warnings, conf.Key("portal-groups", g.Name, "alua")+": its volumes have different states, which a file cannot say")
			continue
		case states[volumes.AccessOf(g)] || len(states) == 0:
			continue
		}
		for now := range states {
			tree, err = edit.Merge(tree, edit.Object{"alua": edit.Object{"state": now.State.String(), "preferred": now.Preferred}}, "portal-groups", g.Name)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return tree, warnings, nil
}
