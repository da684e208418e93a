package daemon

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"lunar/conf"
	"lunar/control"
	"lunar/internal/cli"
	"lunar/internal/initiator"
)

// TestApplyRules: the rules of a file come into force at once and without touching
// sessions; whatever else is wrong with it, or needs a restart, is a reason to
// change nothing.
func TestApplyRules(t *testing.T) {
	const slow = `qos: {rules: [{name: slow, initiators: ["*"], limit: 1}]}`
	c := serveQoS(t, slow)
	conn := dial(t, c.portal, initiator.Options{Target: "iqn.2026-11.test:t"})
	settle(t, conn, 0)
	tasks := c.flood(conn, 10)
	before := rulesOf(c.tgtd(cli.ExitOK, "qos", "show", "--json"))

	other := filepath.Join(c.dir, "other.yaml")
	for _, test := range []struct {
		replace []string
		want    []string
	}{
		{[]string{"limit: 1}", "limit: -1}"}, []string{"other.yaml:7:54", "qos.rules[0].limit", `"-1"`}},
		{[]string{"limit: 1}", "reservation: 7, limit: 5}, {initiators: []}"}, []string{"qos.rules[0].limit", "qos.rules[1].name"}},
		{[]string{"qos:", "qus:"}, []string{"qus: found an unknown key"}},
		{[]string{"targets:", "server: {buffers-per-thread: 8MiB}\ntargets:", "w: {type: \"null\", size: 1MiB}", "w: {type: ram, size: 1MiB}", "limit: 1}", "limit: 9}"},
			[]string{"needs a restart", "server.buffers-per-thread: running with 64MiB, the file has 8MiB", `volumes.w.type: running with "null", the file has "ram"`}},
		{[]string{"qos: {", "qos: {capacity: 5, ", "limit: 1}", "reservation: 9}"}, []string{"qos.capacity: running with auto, the file has 5"}},
		{[]string{"127.0.0.1:0", "192.0.2.77:1"}, []string{"192.0.2.77:1", "no network interface"}},
	} {
		writeFile(t, other, strings.NewReplacer(test.replace...).Replace(qosctlConfig+slow))
		c.has(c.tgtd(cli.ExitFailure, "apply", "--yes", "-c", other), append(test.want, "other.yaml was not applied, and nothing was changed")...)
	}
	if after := rulesOf(c.tgtd(cli.ExitOK, "qos", "show", "--json")); after != before {
		t.Errorf("the rules have changed from\n%s to\n%s", before, after)
	}
	c.has(c.tgtd(cli.ExitFailure, "apply", "-c", filepath.Join(c.dir, "missing.yaml")), "no such file")
	c.has(c.tgtd(cli.ExitOK, "apply", "-c", c.file), "nothing to change", "As in the configuration file.")

	writeFile(t, other, qosctlConfig+`qos: {groups: {g: {initiators: ["iqn.*"]}}, rules: [{name: fast, group: g, limit: 100000}, {name: odd, initiators: ["iqn.2026-11.test:x"], lun: 77}]}`)
	c.has(c.tgtd(cli.ExitOK, "apply", "-c", other), "qos.groups.g: new", "qos.rules.fast: new", "qos.rules.slow: removed", "until the next start", "qos.rules[1].lun")
	c.finish(conn, tasks)
	c.has(c.tgtd(cli.ExitOK, "qos", "show"), "NOT IN FORCE", "not there")
	if _, err := conn.Logout(0); err != nil {
		t.Error(err)
	}
}

// TestApplyRead: what was read of the server's own file before somebody changed it is not put
// into force, for that would undo what was changed.
func TestApplyRead(t *testing.T) {
	c := serveQoS(t, `qos: {rules: [{name: slow, initiators: ["*"], limit: 1}]}`)
	read, err := conf.ReadFile(c.file)
	if err != nil {
		t.Fatal(err)
	}
	api := dialControl(t, c.dir)
	defer api.Close()
	c.tgtd(cli.ExitOK, "volume", "create", "made", "type=null", "size=1MiB")
	for _, dry := range []bool{true, false} {
		_, err = api.Apply(t.Context(), control.File{Name: c.file, Text: string(read), DryRun: dry, Yes: true})
		if err == nil || !strings.Contains(err.Error(), "was changed since it was read") {
			t.Errorf("dry run: %v: found %v, expected that the file was changed", dry, err)
		}
	}
	c.has(c.tgtd(cli.ExitOK, "volume", "list"), "made")
	c.has(c.tgtd(cli.ExitOK, "apply", "-c", c.file), "nothing to change", "As in the configuration file.")
}

// TestHangup: SIGHUP puts the server's own file into force, or says in the log
// why not.
func TestHangup(t *testing.T) {
	c := serveQoS(t, `qos: {capacity: 1000, rules: [{name: a, initiators: ["iqn.*"], limit: 100}]}`)
	hangUp := func(want ...string) {
		t.Helper()
		c.hangUp(t, want...)
	}
	c.tgtd(cli.ExitOK, "qos", "set", "mine", "--initiators", "iqn.2026-11.test:me", "--limit", "5")
	c.write(`qos: {capacity: 1000, rules: [{name: a, initiators: ["iqn.*"], limit: 200}]}`)
	hangUp("outcome=done", "by=signal", "qos.rules.a.limit.iops: ", "qos.rules.mine: removed")
	c.has(c.tgtd(cli.ExitOK, "qos", "show"), "200", "As in the configuration file.", "the same")
	c.write(`qos: {capacity: 2000, rules: [{name: a, initiators: ["iqn.*"], limit: 300}]}`)
	hangUp("nothing was changed", "outcome=refused", "qos.capacity: running with 1000, the file has 2000")
	c.write(`qos: {capacity: 1000, rules: [{name: a, initiators: ["iqn.*"], reservation: 5000}]}`)
	hangUp("nothing was changed", "outcome=refused", "more than the capacity")
	c.write(`qos: {capacity: 1000, overcommit: true, rules: [{name: a, initiators: ["iqn.*"], reservation: 5000}]}`)
	hangUp("outcome=done", "qos.overcommit: true, was false", "reservations are more than the capacity")
	c.has(c.tgtd(cli.ExitOK, "qos", "show"), "warning", "As in the configuration file.", "5000")
	c.has(c.tgtd(cli.ExitOK, "qos", "set", "a", "--reservation", "6000"), "in force", "until the next start", "warning", "4000 more than the capacity of 2000 of devices")
	c.has(c.metrics(), "lunar_qos_overcommitted 1")
	c.write(`qos: {capacity: 1000, rules: [{name: a, initiators: ["iqn.*"], limit: 200}]}`)
	hangUp("outcome=done", "qos.overcommit: false, was true", "qos.rules.a.")
	c.write(`qos: {capacity: 1000, rules: [{name: a}]}`)
	hangUp("nothing was changed", "outcome=refused", "qos.rules[0]")
	c.has(c.tgtd(cli.ExitOK, "qos", "show"), "200")
}

// TestHangupWithoutFile: there is nothing to apply, and the server goes on.
func TestHangupWithoutFile(t *testing.T) {
	s := serve(t, "--state-dir", t.TempDir(), "--listen", "127.0.0.1:0")
	s.hangUp(t, "without a configuration file")
	dial(t, s.portal, initiator.Options{})
}

// TestChangesAtomic: what a change of the API makes of the rules is taken as a
// whole or not at all.
func TestChangesAtomic(t *testing.T) {
	d, _, _ := qosDaemon(t, `{capacity: 30, groups: {g: {initiators: ["*"]}}, rules: [{name: a, initiators: ["iqn.*"], limit: 100}]}`)
	s := &source{daemon: d}
	before := s.Rules()
	mine := errors.New("mine")
	if _, err := s.ChangeRules(func(set *control.RuleSet) error { set.Rules = nil; return mine }); err == nil || !strings.Contains(err.Error(), "mine") {
		t.Errorf("found %v", err)
	}
	var r *control.Refusal
	if _, err := s.ChangeRules(func(set *control.RuleSet) error {
		set.Groups = append(set.Groups, control.Group{Name: "g", Initiators: []string{"x"}})
		return nil
	}); !errors.As(err, &r) || r.State || !strings.Contains(err.Error(), "group g: found twice") {
		t.Errorf("a group twice: found %v", err)
	}
	if _, err := s.ChangeRules(func(set *control.RuleSet) error {
		set.Rules[0].Reservation.IOPS, set.Rules[0].Limit.IOPS = 101, 0
		return nil
	}); !errors.As(err, &r) || !r.State || !strings.Contains(err.Error(), "more than the capacity") {
		t.Errorf("too much: found %v", err)
	}
	if after := s.Rules(); len(after.Rules) != 1 || after.Rules[0].Limit != before.Rules[0].Limit || after.Changed || len(after.Groups) != 1 {
		t.Errorf("found %+v, before %+v", after, before)
	}
}
