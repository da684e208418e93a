package daemon

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"lunar/conf"
	"lunar/control/server"
	"lunar/daemon/medium"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
	"lunar/scheduler"
	"lunar/scheduler/haechi"
)

// qosConfig is a configuration with a qos section, and LUNs that depend on who
// looks.
func qosConfig(t *testing.T, dir, qos string) *conf.Config {
	t.Helper()
	cfg, _, err := conf.Parse("test", []byte(`
portal-groups: {local: {listen: ["127.0.0.1:0"]}}
auth-groups: {db: {initiators: ["iqn.2026-11.test:db*"]}}
volumes:
  a: {type: file, path: `+dir+`/a, size: 1MiB}
  b: {type: ram, size: 1MiB}
  c: {type: "null", size: 1MiB}
targets:
  iqn.2026-11.test:t:
    access:
      - {networks: [192.0.2.0/24], luns: {5: c}}
      - {auth-group: db, luns: {0: a, 1: b}}
      - {luns: {0: a}}
qos: `+qos+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// qosDaemon assembles a server and opens its portals.
func qosDaemon(t *testing.T, qos string) (d *daemon, portal string, log *eventually.Output) {
	t.Helper()
	dir := t.TempDir()
	cfg, log := qosConfig(t, dir, qos), &eventually.Output{}
	d, err := assemble(cfg, dir, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
		defer cancel()
		if err := d.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
	if err := openPortals(d, cfg, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	return d, d.Addrs(cfg.PortalGroups[0].Tag)[0].String(), log
}

func reserving(name, pattern string, iops int64) scheduler.Rule {
	return scheduler.Rule{Name: name, Initiators: []string{pattern}, Reservation: scheduler.Rate{IOPS: iops}, Weight: 1}
}

// TestCheckQoS: what rules reserve is compared with the configured capacity of
// the devices that they are about, with the arithmetic. db1 and db2 may use
// three devices: that of a, b and c; others a and c.
func TestCheckQoS(t *testing.T) {
	const gold = `{name: gold, initiators: ["iqn.2026-11.test:db1", "iqn.2026-11.test:db*"], reservation: 100}`
	for name, c := range map[string]struct{ qos, note, err string }{
		"no rules":     {"{capacity: 1}", "", ""},
		"limit":        {`{capacity: 1, rules: [{name: a, initiators: ["*"], limit: 5}]}`, "", ""},
		"fits":         {"{capacity: 67, rules: [" + gold + "]}", "", ""},
		"fits on one":  {"{capacity: 1, capacities: {b: 198}, rules: [" + gold + "]}", "", ""},
		"too much":     {"{capacity: 66, rules: [" + gold + "]}", "", "qos: reservations add up to 200 tokens per period, 2 more than the capacity of 198 of devices null/c, ram/b, |: gold 2 × 100 ("},
		"overcommit":   {"{capacity: 66, overcommit: true, rules: [" + gold + "]}", "2 more than the capacity of 198 of devices |: gold 2 × 100", ""},
		"unknown":      {"{rules: [" + gold + "]}", "reservations add up to 200 tokens per second, which were not compared with a capacity, for none is known of null/c, ram/b, |: gold 2 × 100 (", ""},
		"partly known": {"{capacities: {b: 1}, rules: [" + gold + "]}", "for none is known of null/c, |: gold 2 × 100 (", ""},
		"group": {`{capacity: 1, capacities: {a: 600, b: 200, c: 400}, groups: {g: {initiators: ["iqn.2026-11.test:db*", "iqn.2026-11.test:web"]}},
  rules: [` + gold + `, {name: all, group: g, reservation: 150}, {name: web, initiators: ["iqn.2026-11.test:web"], reservation: {bandwidth: 4MiB}}]}`,
			"", "reservations add up to 1024 tokens per period, 24 more than the capacity of 1000 of devices null/c, |: web 1 × 1024 ("},
		"each LUN": {`{capacity: 99, rules: [{name: gold, initiators: ["iqn.2026-11.test:db1"], target: "*", reservation: 100}]}`, "", "gold 3 × 100 ("},
		"one LUN":  {`{capacity: 1, capacities: {a: 900, c: 900}, rules: [{name: gold, initiators: ["iqn.2026-11.test:db1"], lun: 1, reservation: 100}]}`, "", "99 more than the capacity of 1 of device ram/b: gold 1 × 100 ("},
		"more specific": {`{capacity: 1, rules: [{name: all, initiators: ["*"], reservation: 7}, {name: db, initiators: ["iqn.2026-11.test:db*"], reservation: 5}]}`,
			"", "reservations add up to 12 tokens per period, 9 more than the capacity of 3 of devices |: all 1 × 7 + db 1 × 5 ("},
	} {
		notes, err := checkQoS(qosConfig(t, "/nonexistent", c.qos))
		var refused *haechi.AdmissionError
		if note := strings.Join(notes, "\n"); !says(note, c.note) || c.note == "" && note != "" {
			t.Errorf("%s: found %q, expected %q", name, note, c.note)
		}
		if (err != nil) != (c.err != "") || err != nil && (!says(err.Error(), c.err) || !errors.As(err, &refused)) {
			t.Errorf("%s: found %v, expected %q", name, err, c.err)
		}
	}
}

// says reports whether a text has all parts between vertical bars.
func says(text, parts string) bool {
	return !slices.ContainsFunc(strings.Split(parts, "|"), func(part string) bool { return !strings.Contains(text, part) })
}

// TestAdmitThreads: what is reserved is compared with what those event threads can do that
// serve the volumes. db1 may use the threads of all, others those of a and c.
func TestAdmitThreads(t *testing.T) {
	q := &qos{cfg: qosConfig(t, t.TempDir(), "{}")}
	at := servers{"a": {"event0"}, "b": {"event1"}, "c": {"event0"}}
	for _, c := range []struct {
		initiator             string
		reserved, first, next int64
		overcommit            bool
		note, refusal         string
	}{
		{initiator: "iqn.2026-11.test:db1", reserved: 200, first: 100, next: 100},
		{initiator: "iqn.2026-11.test:db1", reserved: 201, first: 100, next: 100,
			refusal: "qos: reservations add up to 201 tokens per period, 1 more than the capacity of 200 of event threads event0, event1 together"},
		{initiator: "iqn.2026-11.test:db1", reserved: 201, first: 100},
		{initiator: "iqn.x", reserved: 101, first: 100, next: 100,
			refusal: "qos: reservations add up to 101 tokens per period, 1 more than the capacity of 100 of event thread event0: r 1 × 101"},
		{initiator: "iqn.x", reserved: 101, first: 100, next: 100, overcommit: true, note: "of event thread event0"},
		{initiator: "iqn.x", reserved: 101, next: 100},
	} {
		p, err := q.policy(ruleSet{Rules: []scheduler.Rule{reserving("r", c.initiator, c.reserved)}})
		if err != nil {
			t.Fatal(err)
		}
		threads := []scheduler.ThreadStatus{{Name: "event0", Capacity: c.first}, {Name: "event1", Capacity: c.next}}
		for _, connected := range [][]scheduler.Flow{nil, {{Initiator: c.initiator, Target: "iqn.2026-11.test:t"}}} {
			o, err := q.admitThreads(p, connected, at, threads, c.overcommit)
			if refused := err != nil; refused != (c.refusal != "") || refused && !strings.HasPrefix(err.Error(), c.refusal) {
				t.Errorf("%+v: found %v", c, err)
			}
			if o.Standing != (c.note != "") || !strings.Contains(o.Note, c.note) {
				t.Errorf("%+v: found %+v", c, o)
			}
		}
	}
}

// TestVisible: the first rule of a target that matches decides, but rules for
// networks are taken for what they may be.
func TestVisible(t *testing.T) {
	cfg := qosConfig(t, "/nonexistent", "{}")
	a, b, c := conf.LUN{LUN: 0, Volume: "a"}, conf.LUN{LUN: 1, Volume: "b"}, conf.LUN{LUN: 5, Volume: "c"}
	for name, want := range map[string][]conf.LUN{"iqn.2026-11.test:db1": {c, a, b}, "iqn.2026-11.test:db*": {c, a, b}, "iqn.2026-11.test:web": {c, a}} {
		if luns := visible(cfg, &cfg.Targets[0], name); !reflect.DeepEqual(luns, want) {
			t.Errorf("%s: found %v, expected %v", name, luns, want)
		}
	}
}

// TestDeviceOf: partitions count as their disk, files as the disk that they are
// on, or will be; what is in memory is on a device of its own.
func TestDeviceOf(t *testing.T) {
	dir := t.TempDir()
	sys := medium.BlockDevices
	t.Cleanup(func() { medium.BlockDevices = sys })
	medium.BlockDevices = filepath.Join(dir, "block")
	for _, d := range []string{"devices/cciss!c0/part1", "block"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "devices/cciss!c0/part1/partition"), []byte("1"), 0o600),
		os.Symlink("../devices/cciss!c0", filepath.Join(medium.BlockDevices, "8:0")), os.Symlink("../devices/cciss!c0/part1", filepath.Join(medium.BlockDevices, "8:1"))); err != nil {
		t.Fatal(err)
	}
	for number, want := range map[string]string{"8:0": "cciss/c0", "8:1": "cciss/c0", "8:2": "8:2"} {
		if name := medium.DiskName(number); name != want {
			t.Errorf("%s: found %s, expected %s", number, name, want)
		}
	}
	here := medium.DeviceOf(&conf.Volume{Path: dir})
	if later := medium.DeviceOf(&conf.Volume{Path: filepath.Join(dir, "not", "yet")}); later != here || !strings.Contains(here, ":") {
		t.Errorf("found %s and %s, expected one number", here, later)
	}
	for _, v := range []conf.VolumeType{conf.RAMVolume, conf.NullVolume} {
		if name := medium.DeviceOf(&conf.Volume{Name: "v", Type: v}); name != string(v)+"/v" {
			t.Errorf("found %s for a volume of type %s", name, v)
		}
	}
}

// TestRefusedAtStart: reservations that are too much keep the server down
// before it has opened, or made, anything.
func TestRefusedAtStart(t *testing.T) {
	dir := t.TempDir()
	cfg := qosConfig(t, dir, `{capacity: 5, rules: [{name: a, initiators: ["*"], reservation: 11}]}`)
	_, err := assemble(cfg, dir, slog.New(slog.DiscardHandler))
	if !errors.Is(err, haechi.ErrInsufficient) {
		t.Errorf("found %v, expected what admission says", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "a")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("found %v, expected no volume", err)
	}
}

// TestConfiguredRules: the rules of the file are in force from the first
// command on, and show what they did.
func TestConfiguredRules(t *testing.T) {
	d, portal, _ := qosDaemon(t, `{rules: [{name: slow, initiators: ["iqn.2026-11.test:*"], limit: 50, burst: 1}]}`)
	const name = "iqn.2026-11.test:db1"
	c := dial(t, portal, initiator.Options{Target: "iqn.2026-11.test:t", Initiator: name})
	settle(t, c, 0)
	for range 5 {
		transfer(t, c, readOne, 0, nil, 512)
	}
	status, held := d.QoS(name), int64(0)
	for _, f := range status.Flows {
		for _, e := range f.Effects {
			if e.Rule != "slow" {
				t.Errorf("found rule %s, expected slow", e.Rule)
			}
			held += e.HeldIOPS
		}
	}
	if len(status.Flows) != 2 || held == 0 {
		t.Errorf("found %+v, expected two flows that were held back", status.Flows)
	}
	if s := d.rules(); s.Changed || len(s.Live.Rules) != 1 || s.Live.Rules[0].Name != "slow" {
		t.Errorf("found %+v, expected the rules of the file", s)
	}
}

// TestSetRules: rules change at once or not at all.
func TestSetRules(t *testing.T) {
	d, portal, _ := qosDaemon(t, `{capacity: 400, capacities: {b: 200}, rules: [{name: gold, initiators: ["iqn.2026-11.test:db*"], reservation: 300}]}`)
	configured := d.rules()
	unchanged := func(what string, rules []scheduler.Rule, want error) {
		t.Helper()
		policy := d.QoSPolicy()
		_, err := d.setRules(rules, nil)
		var rule *scheduler.RuleError
		if err == nil || want == nil && !errors.As(err, &rule) || want != nil && !errors.Is(err, want) {
			t.Errorf("%s: found %v, expected %v", what, err, want)
		}
		if d.QoSPolicy() != policy {
			t.Errorf("%s: the policy changed", what)
		}
	}
	unchanged("no name", []scheduler.Rule{reserving("", "iqn.a*", 1)}, nil)
	unchanged("no iSCSI name", []scheduler.Rule{reserving("a", "iqn.a", 1)}, nil)
	unchanged("no target name", []scheduler.Rule{{Name: "a", Initiators: []string{"*"}, Target: "t"}}, nil)
	if _, err := d.setRules(nil, []scheduler.Group{{Name: "g", Initiators: []string{"x"}}}); err == nil {
		t.Error("found no error, expected one of a group without iSCSI names")
	}
	unchanged("overlap", []scheduler.Rule{reserving("b", "iqn.A*", 1), reserving("a", "iqn.a*", 1)}, nil)
	unchanged("too much", []scheduler.Rule{reserving("a", "iqn.a*", 600), reserving("b", "iqn.b*", 401)}, haechi.ErrInsufficient)
	if s := d.rules(); !reflect.DeepEqual(s, configured) || s.Changed || s.Capacities["ram/b"] != 200 {
		t.Errorf("found %+v, expected %+v", s, configured)
	}

	given := []scheduler.Rule{reserving("gold", "iqn.2026-11.TEST:db*", 500)}
	if o, err := d.setRules(given, nil); err != nil || o != (outcome{}) {
		t.Fatal(o, err)
	}
	given[0].Initiators[0] = "*"
	s := d.rules()
	if !s.Changed || s.Live.Rules[0].Reservation.IOPS != 500 || s.Live.Rules[0].Initiators[0] != "iqn.2026-11.test:db*" || s.Configured.Rules[0].Reservation.IOPS != 300 {
		t.Errorf("found %+v", s)
	}

	// Who is there counts, each by its name, in place of the pattern.
	for _, name := range []string{"db1", "db2"} {
		settle(t, dial(t, portal, initiator.Options{Target: "iqn.2026-11.test:t", Initiator: "iqn.2026-11.test:" + name}), 0)
	}
	if _, err := d.setRules([]scheduler.Rule{reserving("gold", "iqn.2026-11.test:db*", 500)}, nil); err != nil {
		t.Error(err)
	}
	unchanged("two initiators", []scheduler.Rule{reserving("gold", "iqn.2026-11.test:db*", 501)}, haechi.ErrInsufficient)
	if _, err := d.changeRules(func(set *ruleSet) error { set.Rules[0].Reservation.IOPS = 1; return fs.ErrClosed }); err != fs.ErrClosed || d.rules().Live.Rules[0].Reservation.IOPS != 500 {
		t.Errorf("found %v and %+v, expected no change", err, d.rules().Live)
	}
	_, err := d.changeRules(func(set *ruleSet) error {
		set.Rules = append([]scheduler.Rule{{Name: "web", Initiators: []string{"iqn.web*"}, Weight: 2}}, set.Rules...)
		return nil
	})
	if s := d.rules(); err != nil || len(s.Live.Rules) != 2 || s.Live.Rules[0].Name != "gold" {
		t.Errorf("found %v and %+v, expected one more rule", err, s.Live)
	}
	if _, err := d.setRules(configured.Configured.Rules, nil); err != nil || d.rules().Changed {
		t.Errorf("found %v and %+v, expected what is configured", err, d.rules())
	}
}

// TestOvercommit: reservations beyond the capacity are a warning that stands as
// long as they do, in the log and in the status.
func TestOvercommit(t *testing.T) {
	d, _, log := qosDaemon(t, `{capacity: 50, overcommit: true, rules: [{name: gold, initiators: ["iqn.a*"], reservation: 101}]}`)
	const want = "1 more than the capacity of 100 of devices "
	status := (&source{daemon: d, changes: &applier{trail: server.NewTrail(nil)}}).Status()
	if !strings.Contains(log.String(), want) || len(status.Warnings) != 1 || !strings.Contains(status.Warnings[0], want) {
		t.Errorf("found warnings %q and the log\n%s", status.Warnings, log)
	}
	if _, err := d.setRules([]scheduler.Rule{reserving("gold", "iqn.a*", 100)}, nil); err != nil || len(d.warnings()) > 0 {
		t.Errorf("found %v, %q, expected no more warning", err, d.warnings())
	}
	if o, err := d.setRules([]scheduler.Rule{reserving("gold", "iqn.a*", 102)}, nil); err != nil || !o.Standing || len(d.warnings()) != 1 {
		t.Errorf("found %+v, %v, %q, expected a warning", o, err, d.warnings())
	}
}

// TestProfile: what was measured is the capacity from the start on. Too much at
// the start is a warning, and refused later.
func TestProfile(t *testing.T) {
	const most = 1 << 40
	d, _, log := qosDaemon(t, `{profile: 100ms, rules: [{name: gold, initiators: ["iqn.a*"], reservation: {bandwidth: 1TiB}}]}`)
	for _, want := range []string{"volume=a", "volume=b device=ram/b", "volume=c", `msg="capacity measured" device=null/c`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("found no %q in\n%s", want, log)
		}
	}
	s := d.rules()
	for _, device := range d.QoS("").Devices {
		if n := s.Capacities[device.Name]; n <= 0 || n >= most || n != device.Capacity {
			t.Errorf("%s: found a capacity of %d and the scheduler's of %d", device.Name, n, device.Capacity)
		}
	}
	if len(d.warnings()) != 1 {
		t.Errorf("found %q, expected a warning of reservations that no device can keep", d.warnings())
	}
	if _, err := d.setRules([]scheduler.Rule{reserving("gold", "iqn.a*", most)}, nil); !errors.Is(err, haechi.ErrInsufficient) {
		t.Errorf("found %v, expected what admission says", err)
	}
	if _, err := d.setRules(nil, nil); err != nil || len(d.warnings()) != 0 || !d.QoSPolicy().Empty() {
		t.Errorf("found %v, expected no rules", err)
	}
}

// TestUnknownCapacity: without a capacity rules are admitted, and said so.
func TestUnknownCapacity(t *testing.T) {
	d, _, log := qosDaemon(t, `{rules: [{name: gold, initiators: ["iqn.a*"], reservation: 100}]}`)
	if !strings.Contains(log.String(), "reservations add up to 100 tokens per second, which were not compared") || d.rules().Capacities["ram/b"] != 0 {
		t.Errorf("found no note in\n%s", log)
	}
	if o, err := d.setRules([]scheduler.Rule{reserving("gold", "iqn.a*", 1<<40)}, nil); err != nil || o.Note == "" || o.Standing || len(d.warnings()) > 0 {
		t.Errorf("found %+v, %v, expected a note", o, err)
	}
}

// TestMeasureDevices: volumes of one device count once, and one that cannot be
// opened not at all.
func TestMeasureDevices(t *testing.T) {
	dir := t.TempDir()
	cfg := qosConfig(t, dir, "{profile: 100ms, cost: {unit: 1KiB}}")
	cfg.Volumes[1] = cfg.Volumes[0]
	cfg.Volumes[1].Name, cfg.Volumes[1].Path = "second", filepath.Join(dir, "second")
	cfg.Volumes[2] = cfg.Volumes[0]
	cfg.Volumes[2].Name, cfg.Volumes[2].Path = "broken", filepath.Join(dir, "no/such/dir")
	var log eventually.Output
	found := measureDevices(cfg, cfg.Volumes, slog.New(slog.NewTextHandler(&log, nil)))
	tokens := found[medium.DeviceOf(&cfg.Volumes[0])]
	if len(found) != 1 || tokens <= 0 || tokens%4 != 0 || strings.Count(log.String(), `msg="capacity measured"`) != 1 || !strings.Contains(log.String(), "volume=broken reason=") {
		t.Errorf("found %v tokens in\n%s", found, &log)
	}
}

// setRules puts rules into force in place of all that were.
func (d *daemon) setRules(rules []scheduler.Rule, groups []scheduler.Group) (outcome, error) {
	return d.changeRules(func(set *ruleSet) error { set.Rules, set.Groups = rules, groups; return nil })
}

// assemble makes a server as a start does that nothing was applied before.
func assemble(cfg *conf.Config, stateDir string, log *slog.Logger) (*daemon, error) {
	return (&compared{}).assemble(cfg, stateDir, log)
}
