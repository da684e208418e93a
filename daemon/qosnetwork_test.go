package daemon

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"lunar/control"
	"lunar/internal/cli"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
	"lunar/target/tcp/kernelqtcp"
)

const networkRules = `, rules: [{name: gold, initiators: ["iqn.*"], class: low}]}`

// explained is what qos explain --json says of the default initiator.
func (l *live) explained() (x control.Explanation) {
	l.t.Helper()
	if err := json.Unmarshal([]byte(l.tgtd(cli.ExitOK, "qos", "explain", "--json", initiator.DefaultInitiator)), &x); err != nil {
		l.t.Fatal(err)
	}
	return x
}

// marked is the class and DSCP of the only connection; empty: none is told.
func (l *live) marked() (class string, dscp int) {
	l.t.Helper()
	x := l.explained()
	if len(x.Connections) != 1 {
		return "", 0
	}
	return x.Connections[0].Class, x.Connections[0].DSCP
}

// TestDSCPChanges: connections are marked by the class of their rules, which an apply and
// qos set change while they are open; without rules or codes they are not.
func TestDSCPChanges(t *testing.T) {
	l := serveLive(t, qosctlConfig+"qos: {network: {}"+networkRules)
	c := dial(t, l.portal, initiator.Options{Target: "iqn.2026-11.test:t"})
	settle(t, c, 0)
	expect := func(class string, dscp int) {
		t.Helper()
		if gotClass, got := l.marked(); got != dscp || gotClass != class {
			t.Errorf("found class %q and DSCP %d, expected %q and %d", gotClass, got, class, dscp)
		}
	}
	expect("", 0)
	l.apply(cli.ExitOK, []string{"network: {}", "network: {dscp: {low: CS1, high: AF31}}"}, "qos.network.dscp")
	expect("low", 8)
	l.has(l.tgtd(cli.ExitOK, "qos", "explain", initiator.DefaultInitiator), "CONGESTION-CONTROL", "low", "none")
	l.tgtd(cli.ExitOK, "qos", "set", "gold", "--class", "high")
	expect("high", 26)
	l.tgtd(cli.ExitOK, "qos", "set", "gold", "--class", "medium")
	expect("", 0) // medium has no code
	l.tgtd(cli.ExitOK, "qos", "delete", "gold")
	expect("", 0)
	logout(t, c)
}

// TestGroupNumberNamesAClass: where a rule lets them, commands name another class; that
// there is a map is told by the VPD page, and its change by a unit attention.
func TestGroupNumberNamesAClass(t *testing.T) {
	l := serveLive(t, qosctlConfig+"qos: {network: {}"+networkRules)
	c := dial(t, l.portal, initiator.Options{Target: "iqn.2026-11.test:t"})
	settle(t, c, 0)
	read := cdb10(0x28, 0)
	read[6] = 5
	named := func() int64 {
		transfer(t, c, read, 0, nil, 64<<10)
		return l.explained().Flows[0].Named
	}
	groupSup := func() bool {
		return transfer(t, c, []byte{0x12, 1, 0x86, 0, 64, 0}, 0, nil, 64)[5]&0x10 != 0
	}
	if groupSup() || named() != 0 {
		t.Error("GROUP NUMBER has a meaning without a map")
	}
	l.apply(cli.ExitOK, []string{"network: {}", "network: {group-numbers: {5: high}}"}, "qos.network.group-numbers")
	l.sense(c, 0, 0x3f, 0x03) // INQUIRY DATA HAS CHANGED
	if !groupSup() || named() != 0 {
		t.Error("the map is not told, or holds without the rule")
	}
	l.tgtd(cli.ExitOK, "qos", "set", "gold", "--group-number")
	if n := named(); n != 1 {
		t.Errorf("%d commands have named a class, expected 1", n)
	}
	read[6] = 6 // not in the map
	if n := named(); n != 1 {
		t.Errorf("%d commands have named a class, expected 1", n)
	}
	l.tgtd(cli.ExitOK, "qos", "set", "gold", "--no-group-number")
	read[6] = 5
	if n := named(); n != 1 {
		t.Errorf("%d commands have named a class, expected 1", n)
	}
	logout(t, c)
	eventually.Holds(t, "the flow is forgotten", func() bool { x := l.explained(); return len(x.Connections) == 0 })
}

// TestGovernedConnections: what is read and written is right while windows bound what is
// under way; the governor is told, and is gone when it is switched off.
func TestGovernedConnections(t *testing.T) {
	l := serveLive(t, qosctlConfig+"qos: {network: {governor: true, links: {lo: 64MiB}}"+networkRules)
	c := dial(t, l.portal, initiator.Options{Target: "iqn.2026-11.test:t"})
	settle(t, c, 0)
	const size = 64 << 10
	rounds := func() {
		t.Helper()
		for i := range 200 {
			lba := uint32(i%8) * size / 512
			want := pattern(i, 0)
			transfer(t, c, cdb10(0x2a, lba), 0, want, 0)
			if got := transfer(t, c, cdb10(0x28, lba), 0, nil, size); !bytes.Equal(got, want) {
				t.Fatalf("round %d: LBA %d is not what was written", i, lba)
			}
		}
	}
	rounds()
	x := l.explained()
	if len(x.Connections) != 1 {
		t.Fatalf("found %d connections, expected one", len(x.Connections))
	}
	one := x.Connections[0]
	if one.GovernedBy == "none" || one.Device != "lo" || one.Window <= 0 || one.Rate <= 0 || one.Bottleneck <= 0 || one.Bottleneck > 64<<20 || one.Asked <= 0 || one.Class != "low" {
		t.Errorf("found %+v, expected one that is governed on lo", one)
	}
	l.has(l.tgtd(cli.ExitOK, "qos", "explain", initiator.DefaultInitiator), "GOVERNED-BY", one.GovernedBy, "lo")
	l.apply(cli.ExitOK, []string{"governor: true", "governor: false"}, "qos.network.governor")
	if n := len(l.explained().Connections); n != 0 {
		t.Errorf("%d connections are told of that are not governed any more", n)
	}
	rounds()
	logout(t, c)
}

// TestKernelGovernorFallsBack: where lunar_qtcp is not loaded the server governs, and says so
// once.
func TestKernelGovernorFallsBack(t *testing.T) {
	if _, err := os.Stat(kernelqtcp.Shares); err == nil {
		t.Skip("lunar_qtcp is loaded on this machine")
	}
	l := serveLive(t, qosctlConfig+"qos: {network: {governor: kernel}"+networkRules)
	for range 2 {
		c := dial(t, l.portal, initiator.Options{Target: "iqn.2026-11.test:t"})
		settle(t, c, 0)
		transfer(t, c, cdb10(0x28, 0), 0, nil, 64<<10)
		x := l.explained()
		if len(x.Connections) != 1 || x.Connections[0].GovernedBy == "none" || x.Connections[0].Congestion == kernelqtcp.Name {
			t.Errorf("found %+v, expected one connection that the server governs", x.Connections)
		}
		logout(t, c)
		eventually.Holds(t, "the connection is gone", func() bool { return len(l.explained().Connections) == 0 })
	}
	if n := strings.Count(l.log.String(), "the kernel does not govern connections"); n != 1 {
		t.Errorf("it was logged %d times, expected once", n)
	}
}
