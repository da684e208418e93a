package scheduler

import "testing"

// TestLimitIsRaised: nobody waits for what is owed to a lower limit of the past,
// however large the command was; a limit that is lowered makes nobody owe more.
func TestLimitIsRaised(t *testing.T) {
	limited := func(iops, bytes int64) Rule {
		return Rule{Initiators: []string{"iqn.a"}, Limit: Rate{IOPS: iops, Bytes: bytes}}
	}
	a := newAlone(t, GateConfig{}, limited(1, 4096))
	q := a.open("iqn.a", 0)
	large, next := &Task{Cost: 256, Bytes: 1 << 20}, &Task{Cost: 1, Bytes: 4096}
	if !a.gate.Admit(q, large, a.now) || a.gate.Admit(q, next, a.now) {
		t.Fatal("expected that one command passes and the next waits")
	}
	if wake := a.gate.Wake() - a.now; wake < 255e9 {
		t.Fatalf("the second command waits %d ns, expected that the limits make it wait", wake)
	}
	a.apply(limited(12800, 50<<20))
	wake := a.gate.Wake() - a.now
	if wake > 11e6 || wake < 9e6 {
		t.Errorf("the second command waits %d ns more, expected what is owed at the new rate", wake)
	}
	a.apply(limited(1, 4096))
	if again := a.gate.Wake() - a.now; again > wake+11e6 {
		t.Errorf("the second command waits %d ns after the limit was lowered, before %d", again, wake)
	}
	a.apply(limited(12800, 50<<20))
	a.now += 11e6
	if a.gate.Next(a.now) != next {
		t.Error("the second command has not come to its turn")
	}
}

// TestLimitIsShared: queues under one limit that is always spent take turns,
// whatever their slots and classes are.
func TestLimitIsShared(t *testing.T) {
	for name, rules := range map[string][]Rule{
		"sessions of one initiator": {{Initiators: []string{"iqn.db*"}, Limit: Rate{IOPS: 700}}},
		"members of a group":        {{Group: "db", Limit: Rate{IOPS: 700}}},
		"classes": {{Group: "db", Limit: Rate{IOPS: 700}},
			{Initiators: []string{"iqn.db"}, Class: High}, {Initiators: []string{"iqn.db2"}, Class: Low}},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAlone(t, GateConfig{}, rules...)
			queues := []*Queue{a.open("iqn.db", 0), a.open("iqn.db", 1), a.open("iqn.db", 2)}
			if name != "sessions of one initiator" {
				queues = []*Queue{a.open("iqn.db", 0), a.open("iqn.db1", 0), a.open("iqn.db2", 0)}
			}
			for range 3000 {
				a.step(10, 16, queues...)
			}
			for i, q := range queues {
				if n := q.Counters().Served; n < 600 || n > 800 {
					t.Errorf("queue %d: %d commands in 3 s, expected a third of 2100", i, n)
				}
			}
		})
	}
}
