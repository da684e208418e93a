package daemon

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"lunar/conf"
	"lunar/control"
	"lunar/control/server"
	"lunar/daemon/state"
	"lunar/daemon/volumes"
	"lunar/internal/locked"
)

// begin serves the control API, and then opens the portals: a change that comes
// meanwhile waits for that, and is refused if it fails.
func (a *applier) begin(socket string, cfg *conf.Config) error {
	err := a.open(socket, cfg)
	if err != nil {
		stopControl(a.api)
	}
	return err
}

func (a *applier) open(socket string, cfg *conf.Config) (err error) {
	a.changing.Lock()
	defer a.changing.Unlock()
	a.tidySnapshots() // before anybody can make one
	if a.api, err = startControl(socket, a); err == nil {
		err = a.joinCluster(cfg)
	}
	if err == nil {
		err = openPortals(a.daemon, cfg, a.log)
	}
	if err == nil {
		a.daemon.serves()
		a.tidy()
		a.keepApplied()
		a.keepRead("start", "read at the start", a.texts.Load().running.text)
		if err := state.NonePending(a.dir); err != nil {
			a.log.Error("the note of a change of the configuration file", "err", err)
		}
	}
	if err != nil {
		a.kill()
	}
	return err
}

// end lets no change begin any more, waits for one that is under way, but not for ever,
// and ends the control API.
func (a *applier) end() {
	a.daemon.ends()
	a.kill()
	ended := make(chan struct{})
	go func() {
		_ = a.lock(server.Asker{}) // which waits, and then refuses
		a.moves.close()
		for _, f := range a.frozen.all() {
			<-f.ended // it has begun to thaw
		}
		close(ended)
	}()
	select {
	case <-ended:
		stopControl(a.api)
	case <-time.After(overdueTime):
		a.log.Error("a change of the configuration has not ended, and is broken off", "after", overdueTime)
	}
}

// file puts the configuration of a file's text into force.
func (a *applier) file(by server.Asker, f control.File) (control.Applied, error) {
	joint := a.daemon.joint()
	parsed := &conf.File{Name: f.Name, Text: []byte(f.Text)}
	l, err := a.serve.parse(parsed, a.dir, joint.config())
	if err != nil {
		return control.Applied{}, asRefusal(f.Name, err)
	}
	if err := a.lock(by); err != nil {
		return control.Applied{}, err
	}
	defer a.changing.Unlock()
	if now := a.daemon.joint(); now != joint { // it came meanwhile
		if l, err = a.serve.parse(parsed, a.dir, now.config()); err != nil {
			return control.Applied{}, asRefusal(f.Name, err)
		}
	}
	if err := a.asRead(f); err != nil {
		return control.Applied{}, err
	}
	return a.force(request{by: by, name: f.Name, text: l.text, warnings: l.warnings, dry: f.DryRun, allowed: conf.Allowed{Yes: f.Yes, Shrink: f.AllowShrink}}, l.Config)
}

// asRead refuses a text of the server's own file that the file does not have any more: it
// would undo changes over the API that were made since it was read.
func (a *applier) asRead(f control.File) error {
	if f.Name != a.serve.Config {
		return nil
	}
	text, err := conf.ReadFile(f.Name)
	if err != nil || string(text) == f.Text {
		return nil // what cannot be read is no change
	}
	return &control.Refusal{What: f.Name + " was not applied, and nothing was changed", State: true, Reasons: []control.Reason{
		{Text: f.Name + " was changed since it was read, or is another file on the server's machine: apply it again, or under another name"}}}
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

// reload reads the file that the daemon was started with again, and logs what has come
// of it, in a line as each change has it; what is wrong has lines of its own.
func (a *applier) reload() {
	service := a.daemon.service
	tellService(a.log, service.Reloading())
	defer func() { tellService(a.log, service.Ready(a.daemon.summary())) }()
	changed := server.Change{What: "SIGHUP: apply " + a.serve.Config, By: server.Signal}
	applied, err := a.again()
	a.daemon.noteApply(err)
	if changed.Err = err; err != nil {
		a.refused(err)
	}
	for _, w := range applied.Warnings {
		a.log.Warn("configuration", "at", w)
	}
	changed.Result = strings.Join(applied.Changes, "; ")
	a.trail.Note(changed)
}

// again puts the file that the daemon was started with into force.
func (a *applier) again() (control.Applied, error) {
	name := a.serve.Config
	if name == "" {
		return control.Applied{}, errors.New("the server was started without a configuration file, so it has none to apply")
	}
	by := server.Asker{By: "signal"}
	if err := a.lock(by); err != nil {
		return control.Applied{}, err
	}
	defer a.changing.Unlock()
	l, err := a.serve.load(a.dir, a.daemon.joint().config()) // with the changes that were waited for
	if err != nil {
		return control.Applied{}, asRefusal(name, err)
	}
	return a.force(request{by: by, name: name, text: l.text, warnings: l.warnings}, l.Config)
}

// refused logs each reason for which nothing was changed.
func (a *applier) refused(err error) {
	var refusal *control.Refusal
	if !errors.As(err, &refusal) || len(refusal.Reasons) == 0 {
		a.log.Error("SIGHUP: nothing was changed", "reason", err)
		return
	}
	for _, r := range refusal.Reasons {
		attrs := []any{"reason", r.String()}
		if with, ok := (control.Allowances{}).MoreFor(r); ok {
			attrs = []any{"reason", r.Text, "allow with", with.ApplyCommand(a.serve.StateDir, a.serve.Socket, a.serve.Config)}
		}
		a.log.Error("SIGHUP: "+refusal.What, attrs...)
	}
}

// apply puts a configuration into force, or says what that would change. Whatever in
// it needs a restart is a reason to refuse it, and so is what is destructive and not
// allowed.
func (a *applier) apply(r request, cfg *conf.Config) (control.Applied, error) {
	if err := a.lock(r.by); err != nil {
		return control.Applied{}, err
	}
	defer a.changing.Unlock()
	return a.force(r, cfg)
}

// force is apply for who holds the changes.
func (a *applier) force(r request, cfg *conf.Config) (control.Applied, error) {
	what := r.name + " was not applied, and nothing was changed"
	plan := a.planned(cfg)
	if err := restarts(what, plan, r.joint != nil); err != nil {
		return control.Applied{}, err
	}
	impacts := conf.Impacts(a.daemon.config.Load(), cfg, a.facts())
	rules := r.rules(a.daemon, cfg)
	out := a.outlook(plan, rules)
	out.Impacts, out.Drift = impactsOf(impacts, r.allowed), a.lastingDrift()
	out.Warnings = append(out.Warnings, a.told(&r)...)
	if err := misnamed(what, cfg, r.allowed.Shrink); err != nil {
		return control.Applied{}, err
	}
	c := a.newChange(cfg, plan)
	c.rules, c.by, c.joint = rules, r.by, cmp.Or(r.joint, a.daemon.joint())
	c.judging = r.dry || r.joint == nil
	if err := c.confused(); err != nil {
		return control.Applied{}, refused(what, err)
	}
	if r.dry {
		admitted, err := a.daemon.tryRules(cfg, rules)
		if err != nil {
			return control.Applied{}, refused(what, err)
		}
		out.Note = admitted.Note
		out.Changes = append(out.Changes, c.sizes.lines()...)
		for _, v := range c.reopenings() {
			out.Changes = append(out.Changes, conf.Key("volumes", v.Name)+": to be opened anew")
		}
		out.Lasting, out.DryRun = "Nothing was changed.", true
		return out, nil
	}
	if err := refusal(what+": it would destroy what is in use", impacts, r.allowed); err != nil {
		return control.Applied{}, err
	}
	unlocked := locked.Failure()
	if r.joint == nil {
		a.daemon.assembly.From = volumes.Source{Config: r.name, Socket: a.serve.Socket}
	}
	c.edit = r.edit
	if err := c.make(); err != nil {
		return control.Applied{}, refused(what, errors.Join(err, r.edit.ended()))
	}
	a.warned = warnedOf(r.warnings)
	if r.joint == nil {
		a.daemon.member.again()
	} else {
		a.daemon.member.joint.Store(r.joint) // before it is kept
	}
	var told []string
	var keeping sync.WaitGroup // both wait for the medium
	keeping.Go(func() { told = a.keepApplied() })
	out.Warnings = append(out.Warnings, a.noteTexts(&r, cfg)...)
	keeping.Wait()
	out.Warnings = append(out.Warnings, tellUnlocked(unlocked, a.log)...)
	out.Warnings = append(out.Warnings, told...)
	if err := r.edit.ended(); err != nil {
		out.Warnings = append(out.Warnings, err.Error())
	}
	out.Changes = append(out.Changes, c.did...)
	out.Note, out.Lasting = c.admitted.Note, a.lasting(&r)
	return out, nil
}

// lastingDrift is what a file does not undo: drains, and access states that it does not
// change.
func (a *applier) lastingDrift() []control.Drift {
	return slices.DeleteFunc(a.daemon.drift(), func(d control.Drift) bool { return d.Kind == "configuration" || d.Kind == "qos" })
}

// lasting says how long a file's configuration lasts.
func (a *applier) lasting(r *request) string {
	switch file, name := a.serve.Config, r.name; {
	case r.edit != nil && r.edit.file == nil:
		return "Not written to a file: until the next start, or SIGHUP."
	case r.edit != nil && string(r.edit.file.Text()) == string(r.edit.was.text):
		return file + " has it already."
	case r.edit != nil:
		return "Written to " + file + "."
	case file == "":
		return "The server was started without a configuration file: until the next start."
	case name != file:
		return "Not the file that the server was started with, " + file + ": until the next start, or SIGHUP, unless it is written there."
	}
	return control.Lasting(a.daemon.rules().Changed)
}

// restarts refuses what needs a restart. What is joint no restart changes, for each node that runs
// refuses it: the reasons say what does.
func restarts(what string, plan conf.Plan, joint bool) error {
	if len(plan.Restart) == 0 {
		return nil
	}
	r := &control.Refusal{What: what + ": this needs a restart", State: true}
	for _, d := range plan.Restart {
		text := d.String()
		switch section := d.Path[0]; {
		case !joint:
		case section == "volumes" || section == "ceph":
			text += "; it changes by two revisions: one without it and what uses it, and one with both again"
		default:
			text += "; it belongs into each node's own file, and changes by a restart of that node"
		}
		r.Reasons = append(r.Reasons, control.Reason{Text: text})
	}
	return r
}

// misnamed refuses to shrink what there is not.
func misnamed(what string, cfg *conf.Config, shrink []string) error {
	for _, name := range shrink {
		if cfg.Volume(name) == nil {
			return &control.Refusal{What: what, Reasons: []control.Reason{{Place: control.NeedsShrink, Text: fmt.Sprintf("found %q, expected a volume of the file", name)}}}
		}
	}
	return nil
}

// outlook is what a plan changes.
func (a *applier) outlook(plan conf.Plan, rules ruleSet) control.Applied {
	out := control.Applied{Changes: []string{}, Warnings: []string{}, Impacts: []control.Impact{}}
	for _, d := range plan.Live {
		if !ruled(d) { // those in force may be others than the file's
			out.Changes = append(out.Changes, d.Change())
		}
	}
	out.Changes = append(out.Changes, changesOf(a.daemon.rules().Live, rules)...)
	return out
}

// asRefusal has a reason for every problem of a configuration.
func asRefusal(name string, err error) error {
	r := &control.Refusal{What: name + " was not applied, and nothing was changed"}
	problems, ok := err.(conf.Errors)
	if !ok {
		r.Reasons = []control.Reason{{Text: err.Error()}}
	}
	for _, p := range problems {
		r.Reasons = append(r.Reasons, control.Reason{Text: p.String()})
	}
	return r
}
