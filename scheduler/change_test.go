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
