package main

import (
	"fmt"
	"log/slog"
	"reflect"

	"lunar/conf"
	"lunar/internal/control"
)

// applier puts a changed configuration into force on a daemon: all of it, or
// nothing. What it can change is the rules and groups of the QoS, and whether
// their reservations may be more than the capacity.
type applier struct {
	daemon  *daemon
	running *conf.Config // that the daemon was started with, as its flags have it
	serve   serveCommand // the flags
	dir     string       // state directory
	log     *slog.Logger
}

// text puts the configuration of a file's text into force.
func (a *applier) text(name string, text []byte) (control.Applied, error) {
	cfg, warnings, err := conf.Parse(name, text)
	if err == nil {
		err = a.serve.override(cfg, a.dir)
	}
	if err != nil {
		return control.Applied{}, asRefusal(name, err)
	}
	return a.apply(name, cfg, warnings)
}

// reloadUntil reloads at every hangup until stop is closed.
func (a *applier) reloadUntil(stop, hangups <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-hangups:
			a.reload()
		}
	}
}

// reload reads the file that the daemon was started with again, and logs what
// has come of it.
func (a *applier) reload() {
	name := a.serve.Config
	if name == "" {
		a.log.Error("SIGHUP: the server was started without a configuration file, so that there is none to apply")
		return
	}
	cfg, warnings, err := a.serve.load(a.dir)
	if err != nil {
		a.refused(asRefusal(name, err))
		return
	}
	applied, err := a.apply(name, cfg, warnings)
	if err != nil {
		a.refused(err)
		return
	}
	for _, w := range applied.Warnings {
		a.log.Warn("configuration", "at", w)
	}
	a.log.Info("SIGHUP: configuration applied", "file", name, "changes", applied.Changes)
}

// refused logs each reason for which nothing was changed.
func (a *applier) refused(err error) {
	refusal, ok := err.(*control.Refusal)
	if !ok {
		a.log.Error("SIGHUP: nothing was changed", "err", err)
		return
	}
	for _, r := range refusal.Reasons {
		a.log.Error("SIGHUP: "+refusal.What, "reason", r.String())
	}
}

// apply puts a configuration into force. Whatever else than rules has changed
// in it needs a restart, and is a reason to refuse it.
func (a *applier) apply(name string, cfg *conf.Config, warnings []conf.Warning) (control.Applied, error) {
	what := name + " was not applied, and nothing was changed"
	rest := *cfg
	rest.QoS.Rules, rest.QoS.Groups, rest.QoS.Overcommit = a.running.QoS.Rules, a.running.QoS.Groups, a.running.QoS.Overcommit
	if found := conf.Diff(a.running, &rest); len(found) > 0 {
		r := &control.Refusal{What: what + ": this needs a restart", State: true}
		for _, d := range found {
			r.Reasons = append(r.Reasons, control.Reason{Text: d.String()})
		}
		return control.Applied{}, r
	}
	var before ruleSet
	after := configuredSet(&cfg.QoS)
	o, err := a.daemon.changeRules(func(set *ruleSet) error {
		before, *set = *set, after
		return nil
	})
	if err != nil {
		return control.Applied{}, refused(what, err)
	}
	if name == a.serve.Config {
		a.daemon.qos.reconfigured(after)
	}
	out := control.Applied{
		Changes: changesOf(before, after), Warnings: []string{}, Note: o.Note, Lasting: control.Lasting(a.daemon.rules().Changed),
	}
	for _, w := range warnings {
		out.Warnings = append(out.Warnings, w.String())
	}
	return out, nil
}

// asRefusal has a reason for every problem of a configuration.
func asRefusal(name string, err error) error {
	r := &control.Refusal{What: name + " was not applied, and nothing was changed"}
	problems, ok := err.(conf.Errors)
	if !ok {
		r.Reasons = []control.Reason{{Text: err.Error()}}
	}
	for _, p := range problems {
		r.Reasons = append(r.Reasons, control.Reason{Text: p.Detail()})
	}
	return r
}

// changesOf says what is new, gone and different, by name.
func changesOf(before, after ruleSet) []string {
	type object struct {
		name  string
		value any
	}
	list := func(s ruleSet) (all []object) {
		for _, g := range s.Groups {
			all = append(all, object{"group " + g.Name, g})
		}
		for _, r := range s.Rules {
			all = append(all, object{"rule " + r.Name, r})
		}
		return all
	}
	old, out := map[string]any{}, []string{}
	if before.Overcommit != after.Overcommit {
		out = append(out, fmt.Sprintf("overcommit: %t", after.Overcommit))
	}
	for _, o := range list(before) {
		old[o.name] = o.value
	}
	for _, o := range list(after) {
		was, had := old[o.name]
		delete(old, o.name)
		switch {
		case !had:
			out = append(out, o.name+": new")
		case !reflect.DeepEqual(was, o.value):
			out = append(out, o.name+": changed")
		}
	}
	for _, o := range list(before) {
		if _, gone := old[o.name]; gone {
			out = append(out, fmt.Sprintf("%s: deleted", o.name))
		}
	}
	return out
}
