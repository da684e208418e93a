package scheduler

import "testing"

// tagging is a gate whose policy has a network, and one initiator whose rule says whether
// commands may name their class.
func tagging(t *testing.T, groupNumber bool) (*Gate, *Queue, *Queue) {
	t.Helper()
	p, err := NewPolicy([]Rule{{Name: "r", Initiators: []string{"iqn.a"}, Class: Low, Weight: 2, GroupNumber: groupNumber}}, nil, Cost{})
	if err != nil {
		t.Fatal(err)
	}
	n := Network{}
	n.Groups[7] = TagOf(High)
	g := NewGate(0, GateConfig{})
	g.Apply(p.WithNetwork(n), 0)
	d, f := &Device{Name: "disk"}, Flow{Initiator: "iqn.a", Target: "iqn.t"}
	return g, g.Open(f, d, 0), g.OpenAs(f, d, High, 0)
}

// TestNamedClass: commands have the class that they name where their rule lets them, and
// the weight of the rule; a policy that has no group numbers any more takes it back.
func TestNamedClass(t *testing.T) {
	g, own, named := tagging(t, true)
	if c, ruled := own.Class(); c != Low || !ruled || !own.Tagged() {
		t.Errorf("the rule's queue has class %v, ruled %v, tagged %v", c, ruled, own.Tagged())
	}
	if c, _ := named.Class(); c != High || named.weight != 2 {
		t.Errorf("the queue of a named class has class %v and weight %d, expected high and the rule's 2", c, named.weight)
	}
	task := &Task{Cost: 1}
	if !g.Admit(named, task, 0) {
		t.Fatal("a command of a named class did not pass")
	}
	if n, o := named.Counters().Named, own.Counters().Named; n != 1 || o != 0 {
		t.Errorf("%d and %d commands have named a class, expected 1 and 0", n, o)
	}
	g.Done(task, 0)
	g.Apply(g.policy.WithNetwork(Network{}), 1)
	if c, _ := named.Class(); c != Low || own.Tagged() {
		t.Errorf("without group numbers the class is %v, tagged %v", c, own.Tagged())
	}
}

func TestNamedClassNeedsARule(t *testing.T) {
	_, own, named := tagging(t, false)
	if c, _ := named.Class(); c != Low || own.Tagged() {
		t.Errorf("a rule without group-number gives the named class %v, tagged %v, expected the rule's low", c, own.Tagged())
	}
}

func TestNetworkOfAPolicy(t *testing.T) {
	if n := (&Policy{}).Network(); n.Active() || n.Tags() {
		t.Errorf("a policy without a network has %+v", n)
	}
	marked := Network{}
	marked.DSCP[Low] = 8
	for _, n := range []Network{marked, {Governor: ServerGovernor}} {
		if !(&Policy{}).WithNetwork(n).Network().Active() {
			t.Errorf("%+v is not active", n)
		}
	}
	if !Urgent.Above(High) || !High.Above(Medium) || !Medium.Above(Low) || Low.Above(Low) {
		t.Error("the classes are not in their order")
	}
}
