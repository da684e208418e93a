package daemon

import (
	"path/filepath"
	"strings"
	"testing"

	"lunar/internal/cli"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
)

// reservedConfig has a pool of which each initiator of a name reserves a part.
var reservedConfig = strings.ReplaceAll(nodeConfig, "CACHE", "") + `qos: {capacity: 1000, rules: [{name: gold, initiators: ["iqn.2026-11.gold:*"], target: "iqn.2026-11.test:t", lun: 0, reservation: 300}]}` + "\n"

// beyond is what says that there is not so much.
const beyond = "more than the capacity of 1000 of device rbd/main/rbd"

// TestReservedOverNodes: what initiators of other nodes have reserved counts where a rule is
// changed, and where a file is applied: what does not fit into the pool changes nothing.
func TestReservedOverNodes(t *testing.T) {
	l := newLabOf(t, reservedConfig)
	for node, name := range map[string]string{"n2": "a", "n3": "b"} {
		dial(t, l.nodes[node].portal, initiator.Options{Target: "iqn.2026-11.test:t", Initiator: "iqn.2026-11.gold:" + name})
	}
	set := func(status int, reservation string) string {
		t.Helper()
		return l.lunar("n1", status, "qos", "set", "gold", "--reservation", reservation)
	}
	eventually.Holds(t, "all nodes hear each other", func() bool {
		return !strings.Contains(set(cli.ExitOK, "500"), "did not answer")
	})
	if said := set(cli.ExitFailure, "501"); !strings.Contains(said, beyond) || !strings.Contains(said, "gold 2 × 501") {
		t.Errorf("found %q, expected what two initiators reserve, and %q", said, beyond)
	}
	file := filepath.Join(t.TempDir(), "tgtd.yaml")
	writeFile(t, file, strings.NewReplacer("NODE", "n1", "TAG", "1", "PORTAL", l.nodes["n1"].portal, "reservation: 300", "reservation: 600").Replace(reservedConfig))
	for _, flags := range [][]string{{}, {"--dry-run"}} {
		if said := l.lunar("n1", cli.ExitFailure, append([]string{"apply", file}, flags...)...); !strings.Contains(said, beyond) || !strings.Contains(said, "gold 2 × 600") {
			t.Errorf("apply %v: found %q, expected what two initiators reserve, and %q", flags, said, beyond)
		}
	}
	if said := l.lunar("n1", cli.ExitOK, "qos", "show"); !strings.Contains(said, "500") || strings.Contains(said, "600") {
		t.Errorf("found %q, expected the reservation of before", said)
	}
	l.wires.CutAll("n3", true)
	if said := set(cli.ExitOK, "1000"); !strings.Contains(said, "n3, which did not answer") {
		t.Errorf("found %q, expected that n3 was not counted", said)
	}
	l.wires.CutAll("n3", false)
}

// TestJointReserved: a reservation that does not fit into the pool is refused for all nodes before
// any has it in force, also where it does not fit beside what one node's own file reserves.
func TestJointReserved(t *testing.T) {
	l := newLabOf(t, ownConfig+"qos: {capacity: 1000}\n")
	l.apply("n1", cli.ExitOK, jointConfig)
	eventually.Holds(t, "the volume has an owner", func() bool { return l.owner("n1") != "" })
	rule := func(name, reservation string) string {
		return `{rules: [{name: ` + name + `, initiators: ["iqn.2026-11.` + name + `:a"], target: "iqn.2026-11.test:t", lun: 0, reservation: ` + reservation + `}]}`
	}
	if said := l.apply("n1", cli.ExitFailure, jointConfig+"qos: "+rule("gold", "1001")+"\n"); strings.Count(said, beyond) != 3 || !strings.Contains(said, "node n3: ") || !strings.Contains(said, "gold 1 × 1001") {
		t.Errorf("found %q, expected that all nodes refuse it", said)
	}
	l.nodes["n2"].stop()
	own := filepath.Join(l.nodes["n2"].dir, "tgtd.yaml")
	writeFile(t, own, strings.NewReplacer("NODE", "n2", "TAG", "2", "PORTAL", l.nodes["n2"].portal).Replace(ownConfig)+"qos: "+strings.Replace(rule("silver", "500"), "{", "{capacity: 1000, ", 1)+"\n")
	l.restart("n2")
	eventually.Holds(t, "the node is there again", func() bool {
		state, _ := l.stateOf("n1", "n2")
		return state == "ok"
	})
	said := l.apply("n1", cli.ExitFailure, jointConfig+"qos: "+rule("gold", "600")+"\n")
	if strings.Count(said, beyond) != 1 || !strings.Contains(said, "node n2: ") || !strings.Contains(said, "silver 1 × 500") {
		t.Errorf("found %q, expected that the one node refuses it", said)
	}
	if _, revision := l.stateOf("n3", "n3"); revision != "1" {
		t.Errorf("found revision %s, expected 1 still", revision)
	}
	if said := l.apply("n1", cli.ExitOK, jointConfig+"qos: "+rule("gold", "500")+"\n"); !strings.Contains(said, "It is revision 2") {
		t.Errorf("found %q", said)
	}
}
