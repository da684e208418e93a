package scheduler

import "testing"

// oneCommand returns a step that is Admit and Done of one command that passes.
func oneCommand(t testing.TB, rules ...Rule) (step func()) {
	g := benchmarkGate(t, 64, rules...)
	q := g.Open(Flow{Initiator: "iqn.a", Target: "iqn.t", LUN: 0}, benchmarkDevice, 0)
	task, now := &Task{Cost: 1, Bytes: 4096}, int64(0)
	return func() {
		now += 10_000
		if !g.Admit(q, task, now) {
			t.Fatal("expected the command to pass")
		}
		g.Done(task, now)
	}
}

func benchmarkGate(t testing.TB, window int, rules ...Rule) *Gate {
	p, err := NewPolicy(rules, nil, Cost{})
	if err != nil {
		t.Fatal(err)
	}
	g := NewGate(0, GateConfig{Window: window})
	g.Apply(p, 0)
	return g
}

var benchmarkDevice = &Device{Name: "device"}

// queuedCommand returns a step that is Done of a command, Next, which is
// another's, and Admit of one that waits.
func queuedCommand(t testing.TB) (step func()) {
	g := benchmarkGate(t, 1, Rule{Initiators: []string{"*"}, Weight: 2})
	queues := []*Queue{g.Open(Flow{Initiator: "iqn.a", Target: "iqn.t", LUN: 0}, benchmarkDevice, 0), g.Open(Flow{Initiator: "iqn.b", Target: "iqn.t", LUN: 0}, benchmarkDevice, 0), g.Open(Flow{Initiator: "iqn.c", Target: "iqn.t", LUN: 0}, benchmarkDevice, 0)}
	running := &Task{Cost: 1}
	g.Admit(queues[0], running, 0)
	for _, q := range queues {
		g.Admit(q, &Task{Cost: 1}, 0)
	}
	now, n := int64(0), 0
	return func() {
		now += 10_000
		g.Done(running, now)
		next := g.Next(now)
		g.Admit(queues[n], running, now)
		n, running = (n+1)%3, next
	}
}

var (
	reservedRule = Rule{Initiators: []string{"iqn.a"}, Reservation: Rate{IOPS: 1e12}}
	limitedRule  = Rule{Initiators: []string{"iqn.a"}, Limit: Rate{IOPS: 1e6, Bytes: 1e12}}
)

// BenchmarkGate is one command on its way through a gate.
func BenchmarkGate(b *testing.B) {
	for _, c := range []struct {
		name string
		step func()
	}{
		{"no-rules", oneCommand(b)},
		{"reserved", oneCommand(b, reservedRule)},
		{"limited", oneCommand(b, limitedRule)},
		{"queued", queuedCommand(b)},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.step()
			}
		})
	}
}

// TestDataPathDoesNotAllocate: neither on the short way nor on the long one.
func TestDataPathDoesNotAllocate(t *testing.T) {
	for name, step := range map[string]func(){"reserved": oneCommand(t, reservedRule), "limited": oneCommand(t, limitedRule), "queued": queuedCommand(t)} {
		if n := testing.AllocsPerRun(1000, step); n != 0 {
			t.Errorf("%s: found %v allocations per command, expected none", name, n)
		}
	}
}
