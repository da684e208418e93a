package daemon

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lunar/conf"
	"lunar/control"
	"lunar/daemon/state"
	"lunar/internal/cli"
	"lunar/internal/eventually"
)

// TestGenerations: each state of the file is kept with who brought it about, and can be
// put back; secrets are kept and not told.
func TestGenerations(t *testing.T) {
	o := serveObjects(t, objectsConfig)
	ctx, none, any := t.Context(), control.Permissions{}, control.Condition{}
	o.ok(o.api.Put(ctx, control.UserAt("g", "other"), control.Object{"secret": "never to be told"}, none, any))
	o.ok(o.api.Put(ctx, control.VolumeAt("new"), control.Object{"type": "ram", "size": "2MiB"}, none, any))
	with := o.text()
	all, err := o.api.Generations(ctx)
	if err != nil || len(all) != 3 || !all[2].Now || all[1].Now || all[0].What != "read at the start" || all[2].What != "set volumes.new" || !strings.Contains(all[2].By, "uid") {
		t.Fatalf("found %+v, %v", all, err)
	}
	one, err := o.api.Generation(ctx, all[1].Number)
	if err != nil || strings.Contains(one.Text, "never to be") || !strings.Contains(one.Text, "# the host") {
		t.Errorf("found %+v, %v", one, err)
	}
	_, err = o.api.Rollback(ctx, control.Rollback{Generation: all[0].Number})
	o.refusedWith(with, "in memory only", err)
	changed := o.ok(o.api.Rollback(ctx, control.Rollback{Generation: all[0].Number, Permissions: control.Permissions{Yes: true}}))
	if o.text() != objectsConfig || changed.Generation != 4 {
		t.Errorf("found %+v and\n%s", changed, o.text())
	}
	o.ok(o.api.Rollback(ctx, control.Rollback{}))
	if o.text() != with {
		t.Errorf("found\n%s", o.text())
	}
	if _, err = o.api.Rollback(ctx, control.Rollback{Generation: 99}); err == nil || !strings.Contains(err.Error(), "found no generation 99, expected one that is kept") {
		t.Errorf("found %v", err)
	}
	for i := range 25 {
		o.ok(o.api.Patch(ctx, control.TargetAt("iqn.2026-11.test:t"), control.Object{"alias": strings.Repeat("a", i+1)}, none, any))
	}
	if all, err = o.api.Generations(ctx); err != nil || len(all) != 20 || all[19].Number != 30 {
		t.Errorf("found %d, %v", len(all), err)
	}
}

// TestCommentedSecrets: what is told of the file has no secret of a user that is commented
// out either, and its other comments.
func TestCommentedSecrets(t *testing.T) {
	const old = "      # - {user: old, secret: \"of another time\"}   # gone\n      # SECRET = 'of another time', secret-file: /there\n"
	o := serveObjects(t, strings.Replace(objectsConfig, "volumes:\n", old+"volumes:\n", 1))
	var running control.RunningConfig
	if err := o.api.Get(t.Context(), control.ConfigPath, &running); err != nil {
		t.Fatal(err)
	}
	kept, err := o.api.Generation(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{running.Text, kept.Text} {
		if strings.Contains(text, "of another time") || !strings.Contains(text, "# - {user: old, secret: "+conf.Withheld+"\n      # SECRET = "+conf.Withheld+"\nvolumes:\n  # the first\n") {
			t.Errorf("found\n%s", text)
		}
	}
	if !strings.Contains(o.text(), old) {
		t.Errorf("the file has become\n%s", o.text())
	}
}

// TestSave: what was changed at run time is written to the file, whose comments stay.
func TestSave(t *testing.T) {
	o := serveObjects(t, objectsConfig)
	ctx := t.Context()
	limit := control.Rate{IOPS: 500, Bytes: 20 << 20}
	if _, err := o.api.PatchRule(ctx, "gold", control.RuleChange{Initiators: []string{"iqn.*"}, Limit: &limit}); err != nil {
		t.Fatal(err)
	}
	o.ok(o.api.Put(ctx, control.VolumeAt("new"), control.Object{"type": "ram", "size": "2MiB"}, control.Permissions{Keep: control.KeepRunning}, control.Condition{}))
	standby := "standby"
	if _, err := o.api.ChangeAccess(ctx, "a", control.AccessChange{State: &standby}); err != nil {
		t.Fatal(err)
	}
	if rules, err := o.api.QoS(ctx); err != nil || len(rules.Rules) != 1 {
		t.Errorf("a change of a volume has ended rules: %+v, %v", rules.Rules, err)
	}
	o.ok(o.api.Save(ctx, control.Save{DryRun: true}))
	if o.text() != objectsConfig {
		t.Errorf("found\n%s", o.text())
	}
	saved := o.ok(o.api.Save(ctx, control.Save{}))
	want := strings.NewReplacer("small\n", "small\n  new:\n    type: ram\n    size: 2MiB\n",
		"{listen: [\"127.0.0.1:0\"]}", "{listen: [\"127.0.0.1:0\"], alua: {preferred: false, state: standby}}").Replace(objectsConfig) +
		"qos:\n  rules:\n    - {name: gold, initiators: [\"iqn.*\"], limit: {iops: 500, bandwidth: 20MiB}}\n"
	if o.text() != want || len(saved.Changes) < 3 {
		t.Errorf("found %+v and\n%s", saved, o.text())
	}
	if drift := statusFrom(t, o.api).Drift; len(drift) != 0 {
		t.Errorf("found drift %+v", drift)
	}
}

// TestPending: a server that was killed between writing a change and making it finds a
// file that it takes, if the change was allowed; and only that file.
func TestPending(t *testing.T) {
	o := serveObjects(t, objectsConfig)
	if o.stop() != cli.ExitOK {
		t.Fatalf("the server failed:\n%s", o.log)
	}
	emptied := strings.Replace(objectsConfig, objectsConfig[strings.Index(objectsConfig, "targets:"):], "", 1)
	writeFile(t, o.file, emptied)
	start := func() (int, string) {
		var log eventually.Output
		ended, end := context.WithCancel(t.Context())
		end() // at once, if it starts
		return run(ended, []string{"serve", "-c", o.file, "--state-dir", o.dir}, cli.Console{Out: &log, Err: &log}), log.String()
	}
	if status, log := start(); status == cli.ExitOK || !strings.Contains(log, "it has no targets") {
		t.Fatalf("found %d: %s", status, log)
	}
	note := func(text string) {
		t.Helper()
		if err := state.NotePending(o.dir, state.Pending{Text: []byte(text), Allowed: conf.Allowed{Yes: true}}); err != nil {
			t.Fatal(err)
		}
	}
	note("another text")
	if status, _ := start(); status == cli.ExitOK {
		t.Error("a change of another text allowed this one")
	}
	note(emptied)
	if status, log := start(); status != cli.ExitOK {
		t.Errorf("found %d: %s", status, log)
	}
	if _, err := os.Stat(state.PendingFile(o.dir)); err == nil {
		t.Error("the note of a change that was made is still there")
	}
}

// TestObjectCommands: objects go from one server to another by their text.
func TestObjectCommands(t *testing.T) {
	o := serveObjects(t, objectsConfig)
	lunar := func(want int, args ...string) string {
		t.Helper()
		var out eventually.Output
		if got := run(t.Context(), append(args, "--state-dir", o.dir), cli.Console{Out: &out, Err: &out}); got != want {
			t.Errorf("%v: found status %d:\n%s", args, got, out.String())
		}
		return out.String()
	}
	has := func(text string, words ...string) {
		t.Helper()
		for _, w := range words {
			if !strings.Contains(text, w) {
				t.Errorf("found %q, expected %q", text, w)
			}
		}
	}
	if text := lunar(cli.ExitOK, "export"); text != strings.Replace(objectsConfig, "never to be seen", conf.Withheld, 1) {
		t.Errorf("found\n%s", text)
	}
	has(lunar(cli.ExitOK, "export", "volumes.disk", "targets.iqn.2026-11.test:t"), "volumes:\n  disk:\n    type: ram\n    size: 1MiB\ntargets:\n  iqn.2026-11.test:t:\n    luns: ")
	file := o.file + ".objects"
	writeFile(t, file, "volumes:\n  new: {type: ram, size: 1MiB}\ntargets:\n  iqn.2026-11.test:new: {luns: {0: new}}\n")
	has(lunar(cli.ExitOK, "create", "-n", "-f", file), "+ volumes.new: new", "Nothing was changed")
	has(lunar(cli.ExitOK, "create", "-f", file), "+ targets.iqn.2026-11.test:new: new", "2 added, 0 changed, 0 removed. Written to "+o.file)
	has(lunar(cli.ExitFailure, "create", "-f", file), "found one, expected none")
	has(lunar(cli.ExitOK, "create", "--replace", "-f", file), "nothing to change")
	has(lunar(cli.ExitOK, "generations"), "read at the start", "set volumes.new, set targets.iqn.2026-11.test:new")
	has(lunar(cli.ExitOK, "generations", "1"), "# Our disks.")
	writeFile(t, file, objectsConfig)
	has(lunar(cli.ExitDestructive, "diff", file), "- volumes.new: removed", "- targets.iqn.2026-11.test:new: removed", "0 added, 0 changed, 2 removed", "in memory only", "lunar apply", "--yes")
	has(lunar(cli.ExitFailure, "rollback", "0"), "expected the number of a state")
	has(lunar(cli.ExitDestructive, "rollback"), "in memory only", "lunar rollback", "--yes")
	has(lunar(cli.ExitOK, "rollback", "--yes", "1"), "- volumes.new: removed")
	has(lunar(cli.ExitOK, "save"), "nothing to change")
	if o.text() != objectsConfig {
		t.Errorf("found\n%s", o.text())
	}
}

// TestUnfitText: a server of a text that commands do not change is asked as any other.
func TestUnfitText(t *testing.T) {
	o := serveObjects(t, "# one\r# two\n"+objectsConfig)
	if text, err := o.api.Running(t.Context()); err != nil || !strings.Contains(text, "volumes:") {
		t.Errorf("found %q, %v", text, err)
	}
	_, err := o.api.Patch(t.Context(), control.VolumeAt("disk"), control.Object{"read-only": true}, control.Permissions{}, control.Condition{})
	if err == nil || !strings.Contains(err.Error(), "carriage returns that do not end each line, which commands do not change") {
		t.Errorf("found %v", err)
	}
}

// TestRollbackOfWhatWasNotKept: the state before the last is the last that was kept, if the
// last could not be.
func TestRollbackOfWhatWasNotKept(t *testing.T) {
	o := serveObjects(t, objectsConfig)
	ctx, yes, any := t.Context(), control.Permissions{Yes: true}, control.Condition{}
	volume := control.Object{"type": "ram", "size": "2MiB"}
	o.ok(o.api.Put(ctx, control.VolumeAt("kept"), volume, yes, any))
	want := o.text()
	full := filepath.Join(o.dir, "generations", "00000003.json.new")
	if err := os.Mkdir(full, 0o700); err != nil {
		t.Fatal(err)
	}
	if changed := o.ok(o.api.Put(ctx, control.VolumeAt("lost"), volume, yes, any)); changed.Generation != 0 {
		t.Fatalf("found generation %d", changed.Generation)
	}
	if err := os.Remove(full); err != nil {
		t.Fatal(err)
	}
	o.ok(o.api.Rollback(ctx, control.Rollback{Permissions: yes}))
	if o.text() != want {
		t.Errorf("found\n%s", o.text())
	}
}
