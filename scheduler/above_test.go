package scheduler

import "testing"

// TestModesty: a node that has come, or stood still, has little of a limit until it is granted more
// or some time has passed: others do not know yet that it is there.
func TestModesty(t *testing.T) {
	const nodes = 3
	disk := &Device{Name: "pool"}
	c := NewCoordinator(CoordinatorConfig{Threads: 1, Above: true, Foreign: func(string) bool { return true }})
	c.SetNodes(nodes)
	grants := make([]GateGrant, 1)
	share := func(now int64) int64 {
		c.Collect(&GateReport{Servers: []ServerReport{{Device: disk, Number: 1, Entities: []EntityReport{{Entity: "a", Number: 1, Level: InitiatorLevel, Root: true, Limit: 1000}}}}})
		c.Redistribute(now, grants)
		return grants[0].Shares[0].Share
	}
	const interval = 200e6
	now := int64(interval)
	expect := func(what string, least, most int64) {
		t.Helper()
		if got := share(now); got < least || got > most {
			t.Errorf("%s: found %d millionths, expected %d to %d", what, got, least, most)
		}
		now += interval
	}
	for now < modesty {
		expect("it has come", 1, whole/Newcomers/nodes)
	}
	now += interval
	expect("nobody was heard for long", whole/nodes, whole/nodes)
	var r GateReport
	c.Report(&r)
	c.Take(&NodeGrant{Left: 1e9, Lasts: 2e9, Nodes: nodes, Parts: []Part{{Number: r.Servers[0].Entities[0].Number, Share: whole}}}, now)
	expect("it was granted all", whole, whole)
	expect("the grant holds", whole, whole)
	now += 10e9
	expect("it stood still", 1, whole/Newcomers/nodes)
}
