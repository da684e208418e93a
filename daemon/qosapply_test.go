package daemon

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"lunar/control"
	"lunar/internal/cli"
	"lunar/internal/initiator"
)

// device is what qos show says of a device; nothing if there is none.
func (l *live) device(name string) control.Device {
	l.t.Helper()
	var q control.QoS
	if err := json.Unmarshal([]byte(l.tgtd(cli.ExitOK, "qos", "show", "--json")), &q); err != nil {
		l.t.Fatal(err)
	}
	for _, d := range q.Capacity.Devices {
		if d.Name == name {
			return d
		}
	}
	return control.Device{}
}

// TestApplyCapacities: what comes by an apply has the capacity that comes with
// it, what goes takes it along, and admission goes by what is there then.
func TestApplyCapacities(t *testing.T) {
	const rules = `, rules: [{name: gold, initiators: ["iqn.a*"], target: "iqn.2026-11.test:t", lun: 0, reservation: 90}]}`
	l := serveLive(t, qosctlConfig+"qos: {capacities: {v: 100}"+rules)
	l.allow = []string{"--yes"} // volumes in memory go
	gold := func(status int, reservation string, want ...string) {
		t.Helper()
		l.has(l.tgtd(status, "qos", "set", "gold", "--reservation", reservation), want...)
	}
	gold(cli.ExitFailure, "101", "more than the capacity of 100 of device ram/v")
	l.apply(cli.ExitOK, []string{
		"capacities: {v: 100}", "capacities: {v: 100, x: 300}", "volumes:\n", "volumes:\n  x: {type: ram, size: 1MiB}\n", "0: v", "0: x",
	}, "volumes.x: new", "qos.capacities.x: new")
	l.has(l.tgtd(cli.ExitOK, "qos", "show"), "ram/x", "300", "configured")
	gold(cli.ExitFailure, "301", "more than the capacity of 300 of device ram/x")
	gold(cli.ExitOK, "300")
	l.apply(cli.ExitOK, []string{"x: 300", "x: 500"}, "qos.capacities.x: 500, was 300")
	gold(cli.ExitOK, "500")
	l.apply(cli.ExitFailure, []string{"x: 500", "x: 80"}, "more than the capacity of 80 of device ram/x")
	gold(cli.ExitOK, "500")
	l.apply(cli.ExitOK, []string{
		"capacities: {v: 100, x: 500}", "capacities: {v: 100}", "  x: {type: ram, size: 1MiB}\n", "", "0: x", "0: v",
	}, "volumes.x: removed", "qos.capacities.x: removed")
	gold(cli.ExitFailure, "101", "more than the capacity of 100 of device ram/v")
}

// TestApplyMeasures: the device of a volume that comes is measured as those at
// the start were, and what was measured goes with it.
func TestApplyMeasures(t *testing.T) {
	l := serveLive(t, qosctlConfig+"qos: {profile: 100ms}\n")
	l.allow = []string{"--yes"} // as above
	l.apply(cli.ExitOK, []string{"volumes:\n", "volumes:\n  x: {type: ram, size: 1MiB}\n"}, "volumes.x: new")
	l.has(l.log.String(), `msg="capacity measured" device=ram/x`)
	x := l.device("ram/x")
	if x.Source != "measured" || x.Tokens == 0 || x.Admission != x.Tokens {
		t.Errorf("found %+v, expected a measured capacity", x)
	}
	l.apply(cli.ExitOK, []string{"  x: {type: ram, size: 1MiB}\n", ""}, "volumes.x: removed")
	if x := l.device("ram/x"); x.Name != "" {
		t.Errorf("found %+v, expected no device", x)
	}
}

// TestApplyProtectedSize: a volume with protection information changes its size with
// that, while it is open and between two starts.
func TestApplyProtectedSize(t *testing.T) {
	l := serveLive(t, `
portal-groups: {a: {listen: ["127.0.0.1:0"]}}
volumes:
  p: {type: file, path: p, size: 2MiB, protection: 1}
targets: {"iqn.2026-11.test:t": {luns: {0: p}}}
`)
	c := dial(t, l.portal, initiator.Options{Target: "iqn.2026-11.test:t"})
	settle(t, c, 0)
	transfer(t, c, cdb10(0x2a, 0), 0, pattern(0, 1), 0)
	l.allow = []string{"--allow-shrink", "p"}
	for _, sizes := range [][]string{{"2MiB", "1MiB"}, {"1MiB", "4MiB"}} {
		l.apply(cli.ExitOK, sizes, "volumes.p.size: "+sizes[1]+", was "+sizes[0])
		l.sense(c, 0, 0x2a, 0x09)
	}
	transfer(t, c, cdb10(0x2a, 8000), 0, pattern(1, 1), 0)
	l.apply(cli.ExitFailure, []string{"protection: 1", "protection: 3"}, "needs a restart", "volumes.p.protection")
	l.apply(cli.ExitOK, []string{"volumes:", "log: {level: debug}\nvolumes:"}, "log.level")
	logout(t, c)
	l.serving.stop()

	writeFile(t, l.file, strings.Replace(l.text, "4MiB", "8MiB", 1))
	l.serving = serve(t, "-c", l.file, "--state-dir", l.dir)
	c = dial(t, l.portal, initiator.Options{Target: "iqn.2026-11.test:t"})
	settle(t, c, 0)
	for lba, want := range map[uint32][]byte{0: pattern(0, 1), 8000: pattern(1, 1), 16000: make([]byte, 64<<10)} {
		if got := transfer(t, c, cdb10(0x28, lba), 0, nil, 64<<10); !bytes.Equal(got, want) {
			t.Errorf("LBA %d is not what was written", lba)
		}
	}
	logout(t, c)
}
