package daemon

import (
	"errors"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"lunar/conf"
	"lunar/control"
	"lunar/internal/cli"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
	"lunar/scheduler"
)

const qosctlConfig = `
portal-groups: {a: {listen: ["127.0.0.1:0"]}}
volumes:
  v: {type: ram, size: 1MiB}
  w: {type: "null", size: 1MiB}
targets: {"iqn.2026-11.test:t": {luns: {0: v, 1: w}}}
`

// controlled is a served daemon and how commands reach it.
type controlled struct {
	*serving
	t    *testing.T
	dir  string
	file string
}

// serveQoS serves a configuration with a qos section.
func serveQoS(t *testing.T, qos string) *controlled {
	t.Helper()
	dir := t.TempDir()
	c := &controlled{t: t, dir: dir, file: filepath.Join(dir, "tgtd.yaml")}
	c.write(qos)
	c.serving = serve(t, "-c", c.file, "--state-dir", dir)
	return c
}

func (c *controlled) write(qos string) { writeFile(c.t, c.file, qosctlConfig+qos) }

// tgtd runs a command of which the exit status is known and returns what it
// printed.
func (c *controlled) tgtd(want int, args ...string) string {
	c.t.Helper()
	var out, err eventually.Output
	if status := run(c.t.Context(), append(args, "--state-dir", c.dir), cli.Console{Out: &out, Err: &err}); status != want {
		c.t.Fatalf("tgtd %q ended with %d, expected %d: %s%s", args, status, want, out.String(), err.String())
	}
	return out.String() + err.String()
}

func (c *controlled) has(text string, all ...string) {
	c.t.Helper()
	for _, want := range all {
		if !strings.Contains(text, want) {
			c.t.Errorf("found no %q in\n%s", want, text)
		}
	}
}

// explain asks for an explanation.
func (c *controlled) explain(name string) (x control.Explanation) {
	c.t.Helper()
	api, err := control.Dial(filepath.Join(c.dir, control.SocketName))
	if err != nil {
		c.t.Fatal(err)
	}
	defer api.Close()
	if err := api.Get(c.t.Context(), control.ExplainPath(name), &x); err != nil {
		c.t.Fatal(err)
	}
	return x
}

// metrics is what Prometheus would get.
func (c *controlled) metrics() string {
	c.t.Helper()
	api, err := control.Dial(filepath.Join(c.dir, control.SocketName))
	if err != nil {
		c.t.Fatal(err)
	}
	defer api.Close()
	return raw(c.t, api, "/metrics")
}

// flood starts reads of LUN 0 and waits until all but those that pass at once wait for
// their turn, which at one token per second is a minute for each.
func (c *controlled) flood(conn *initiator.Conn, n int) (tasks []*initiator.Task) {
	c.t.Helper()
	for range n {
		task, err := conn.Start(initiator.Command{CDB: []byte{0x28, 0, 0, 0, 0, 0, 0, 2, 0, 0}, InLen: 512 * 512})
		if err != nil {
			c.t.Fatal(err)
		}
		tasks = append(tasks, task)
	}
	eventually.Passes(c.t, "the commands wait", func() control.Explanation { return c.explain(initiator.DefaultInitiator) },
		func(x control.Explanation) bool { return len(x.Flows) > 0 && x.Flows[0].Waiting >= n-2 })
	return tasks
}

func (c *controlled) finish(conn *initiator.Conn, tasks []*initiator.Task) {
	c.t.Helper()
	for _, task := range tasks {
		if r, err := conn.Wait(task); err != nil || r.Status != 0 {
			c.t.Fatalf("found %+v, %v", r, err)
		}
	}
}

// TestQoSLive: a limit of one command per second holds an initiator back, which
// is told by rule; when the limit is lifted the same session goes on at once.
func TestQoSLive(t *testing.T) {
	c := serveQoS(t, `qos: {capacity: 100000, rules: [{name: slow, initiators: ["*"], limit: 1}]}`)
	conn := dial(t, c.portal, initiator.Options{Target: "iqn.2026-11.test:t"})
	settle(t, conn, 0)
	settle(t, conn, 1)
	tasks := c.flood(conn, 20)
	c.has(c.tgtd(cli.ExitFailure, "qos", "explain", initiator.DefaultInitiator[:len(initiator.DefaultInitiator)-1]+"!"), "did you mean "+initiator.DefaultInitiator+"?")
	text := c.tgtd(cli.ExitOK, "qos", "explain", initiator.DefaultInitiator)
	c.has(text, "iqn.2026-11.test:t 0", "slow", "initiator", "service")
	x := c.explain(initiator.DefaultInitiator)
	if f := x.Flows[0]; len(x.Flows) != 2 || f.LUN != 0 || !f.Open || f.Offered != 20 || f.Waiting < 18 || len(f.Rules) != 1 || f.Rules[0].Rule != "slow" || f.Rules[0].HeldIOPS <= 0 {
		t.Errorf("found %+v", x.Flows)
	}
	c.has(c.metrics(),
		`lunar_qos_rules 1`,
		`lunar_qos_offered_commands_total{initiator="`+initiator.DefaultInitiator+`",lun="0",target="iqn.2026-11.test:t"} 20`,
		`lunar_qos_throttled_seconds_total{initiator="`+initiator.DefaultInitiator+`",limit="iops",lun="0",rule="slow",target="iqn.2026-11.test:t"} `)

	text = c.tgtd(cli.ExitOK, "qos", "set", "slow", "--limit", "100000,1GiB", "--reservation", "500", "--weight", "7")
	c.has(text, "slow: in force", "until the next start")
	c.finish(conn, tasks)
	c.has(c.metrics(),
		`lunar_qos_served_commands_total{initiator="`+initiator.DefaultInitiator+`",lun="0",target="iqn.2026-11.test:t"} 20`,
		`lunar_qos_queue_seconds_count{initiator="`+initiator.DefaultInitiator+`",lun="0",target="iqn.2026-11.test:t"} 20`,
		`lunar_qos_reservation_tokens_per_second{level="initiator",name="`+initiator.DefaultInitiator+`",rule="slow"} 500`,
		`lunar_qos_capacity_tokens_per_second{device="ram/v"} 100000`)
	c.has(c.tgtd(cli.ExitOK, "qos", "show"), "ram/v   v        100000    configured", "slow", "100000, 1GiB/s", "differs")
	c.has(c.tgtd(cli.ExitOK, "qos", "show", "--json"), `"changed":true`, `"weight":7`)

	c.has(c.tgtd(cli.ExitOK, "qos", "delete", "slow"), "slow: deleted")
	c.has(c.tgtd(cli.ExitOK, "qos", "show"), "NOT IN FORCE")
	c.has(c.metrics(), "lunar_qos_rules 0")
	transfer(t, conn, readOne, 0, nil, 512)
	if strings.Contains(c.metrics(), "lunar_qos_offered_commands_total{") {
		t.Error("there are metrics of rules that are not in force")
	}
	if _, err := conn.Logout(0); err != nil {
		t.Error(err)
	}
	if c.stop() != cli.ExitOK {
		t.Errorf("the server failed:\n%s", c.log)
	}
}

// TestPromisesAreTold: the periods in which a reservation was kept are counted.
func TestPromisesAreTold(t *testing.T) {
	c := serveQoS(t, `qos: {capacity: 100000, rules: [{name: gold, initiators: ["iqn.*"], reservation: 10}]}`)
	conn := dial(t, c.portal, initiator.Options{Target: "iqn.2026-11.test:t"})
	settle(t, conn, 0)
	x := eventually.Passes(t, "a period is told", func() control.Explanation {
		transfer(t, conn, readOne, 0, nil, 512)
		return c.explain(initiator.DefaultInitiator)
	}, func(x control.Explanation) bool {
		return len(x.Promises) == 1 && x.Promises[0].Met >= 1 && len(x.Promises[0].Periods) >= 1
	})
	if p := x.Promises[0]; p.Rule != "gold" || p.Level != "initiator" || p.Name != initiator.DefaultInitiator || p.Reservation != 10 || p.Missed != 0 {
		t.Errorf("found %+v", p)
	}
	c.has(c.tgtd(cli.ExitOK, "qos", "explain", initiator.DefaultInitiator), "PROMISED TO", "gold", "KEPT")
	if _, err := conn.Logout(0); err != nil {
		t.Error(err)
	}
	c.has(c.tgtd(cli.ExitOK, "qos", "explain", "iqn.2026-11.test:nobody"), "no session", "gold", "iqn.2026-11.test:t 1")
}

// TestQoSRefused: what is refused is told with all reasons, and changes nothing.
func TestQoSRefused(t *testing.T) {
	c := serveQoS(t, `qos: {capacity: 1000, groups: {g: {initiators: ["iqn.2026-11.test:*"]}}, rules: [{name: gold, initiators: ["iqn.*"], reservation: 500, limit: 600}]}`)
	before := c.tgtd(cli.ExitOK, "qos", "show", "--json")
	for _, test := range []struct {
		args []string
		want []string
	}{
		{[]string{"set", "gold", "--limit", "100"}, []string{"rule gold: limit.iops", "100", "reservation of 500"}},
		{[]string{"set", "gold", "--reservation", "5000", "--limit", "none"}, []string{"more than the capacity of 2000 of devices null/w, ram/v together", "gold"}},
		{[]string{"set", "more", "--reservation", "5000", "--group", "g"}, []string{"more than the capacity of 2000", "more"}},
		{[]string{"set", "new"}, []string{"rule new: initiators", "neither initiators nor group"}},
		{[]string{"set", "new", "--group", "h"}, []string{`"h"`, "group with initiators"}},
		{[]string{"set", "new", "--initiators", "no such name,iqn.*", "--limit", "5"}, []string{"no such name", "which rule gold matches as specifically"}},
		{[]string{"set", "gold", "--weight=-1"}, []string{"weight"}},
		{[]string{"set", "gold", "--class", "best"}, []string{"class"}},
		{[]string{"set", "gold", "--lun", "99999"}, []string{"16383"}},
		{[]string{"set", "gold", "--limit", "much"}, []string{`"much"`, "20MiB"}},
		{[]string{"set", "gold", "--limit", "5,6"}, []string{`"5,6"`}},
		{[]string{"set", "not a name", "--limit", "5"}, []string{"name"}},
		{[]string{"delete", "silver"}, []string{`no rule "silver"`}},
	} {
		args := append([]string{"qos"}, test.args...)
		c.has(c.tgtd(cli.ExitFailure, args...), test.want...)
	}
	if after := c.tgtd(cli.ExitOK, "qos", "show", "--json"); rulesOf(after) != rulesOf(before) {
		t.Errorf("the rules have changed from\n%s to\n%s", before, after)
	}
	c.has(c.tgtd(cli.ExitOK, "qos", "set", "gold", "--limit", "none", "--group", "g", "--lun", "1"), "gold: in force")
	c.has(c.tgtd(cli.ExitOK, "qos", "set", "gold", "--lun", "all", "--target", "iqn.*", "--burst", "none"), "gold: in force")
	c.has(c.tgtd(cli.ExitOK, "qos", "show"), "group g", "iqn.*", "-")
}

// rulesOf cuts what changes with time from an answer.
func rulesOf(answer string) string {
	rules, _, _ := strings.Cut(answer, `"capacity"`)
	return rules
}

// TestSpellings: a file and the flags of qos set take the same, and mean the same by
// it; so do sizes in a file and those of tgtload.
func TestSpellings(t *testing.T) {
	rates := []string{
		"5000", "1", "1000000000", "4KiB", "500MiB", "500MiB/s", "20 MiB", "1TiB/s", "5,8KiB", "8KiB,5", "8KiB/s,5", "5, 8KiB/s", "none",
		"0", "-1", "+5", "007", "0x10", "1_000", "5e3", "1000000001", "5k", "5000/s", "1KiB", "2TiB", "5GB", "5MB/s", "5Mbit/s", "20MiB/m", "20mib", "/s",
		"5,none", "none,5", "1MiB,2MiB", "5,6", "5,8KiB,", ",", "None", "unlimited", "9223372036854775808", "10%", "5 ,,8KiB",
	}
	table := map[string][]string{
		"reservation": rates, "limit": rates, "burst": rates,
		"weight":     {"1", "1000", "0", "1001", "-1", "+1", "01", "0x10", "1_0", "1.5", "all", "none", "50%"},
		"lun":        {"0", "16383", "all", "16384", "-1", "+1", "01", "0x1", "All", "none", "*"},
		"target":     {"iqn.2026-11.test:t", "IQN.2026-11.test:T", "iqn.2026-11.test:*", "all", "ALL", "none", "t", "iqn.2026-11.test:a,b"},
		"class":      {"urgent", "high", "medium", "low", "Urgent", "none", "3"},
		"initiators": {"iqn.2026-11.test:i", "IQN.2026-11.test:i*", "*", "all", "i"},
	}
	accepted := 0
	for key, texts := range table {
		for _, text := range texts {
			t.Run(key+" "+text, func(t *testing.T) {
				file, fileErr := ruleOfFile(key, text)
				flag, flagErr := ruleOfFlag(t, key, text)
				if (fileErr == nil) != (flagErr == nil) || fileErr == nil && !reflect.DeepEqual(file, flag) {
					t.Errorf("the file has %+v, %v\nthe flag has %+v, %v", file, fileErr, flag, flagErr)
				}
				if fileErr == nil {
					accepted++
				}
			})
		}
	}
	if accepted < 40 {
		t.Errorf("%d spellings were accepted, expected those that are meant to be", accepted)
	}
}

// ruleOfFile is the rule of a file in which a key has a value.
func ruleOfFile(key, text string) (scheduler.Rule, error) {
	quoted := strconv.Quote(text)
	if key == "initiators" {
		quoted = "[" + quoted + "]"
	} else {
		quoted += ", initiators: ['*']"
	}
	if limit := "1000000000,1TiB"; key == "burst" {
		quoted += ", limit: '" + limit + "'"
	}
	cfg, _, err := conf.Parse("file", []byte("qos: {rules: [{name: r, "+key+": "+quoted+"}]}"))
	if err != nil {
		return scheduler.Rule{}, err
	}
	return cfg.QoS.Rules[0], nil
}

// ruleOfFlag is the rule that lunar qos set makes, by way of what a server judges.
func ruleOfFlag(t *testing.T, key, text string) (scheduler.Rule, error) {
	t.Helper()
	var k commandLine
	args := []string{"r", "--" + key + "=" + text}
	if key == "burst" {
		args = append(args, "--limit=1000000000,1TiB")
	}
	if _, err := kong.Must(&k.QoS.Set).Parse(args); err != nil {
		return scheduler.Rule{}, err
	}
	change, err := k.QoS.Set.Change()
	if err != nil {
		return scheduler.Rule{}, err
	}
	set := control.RuleSet{Rules: []control.Rule{{Name: "r", Initiators: []string{"*"}, Weight: 1}}}
	change.Apply(&set.Rules[0])
	meant, err := meantSet(&set)
	if err = errors.Join(err, (&qos{cfg: &conf.Config{}}).check(meant)); err != nil {
		return scheduler.Rule{}, err
	}
	meant.Rules, _ = conf.NormalRules(meant.Rules, nil)
	return meant.Rules[0], nil
}
