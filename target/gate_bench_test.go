package target_test

import (
	"testing"

	"lunar/internal/initiator"
	"lunar/scheduler"
	"lunar/target"
)

// promised is a reservation and a limit that hold nobody back.
var promised = scheduler.Rule{
	Name: "promised", Initiators: []string{"*"},
	Reservation: scheduler.Rate{IOPS: 1e7}, Limit: scheduler.Rate{IOPS: 1e8, Bytes: 1e12},
}

// ruled is a server with a RAM volume and rules.
func ruled(t testing.TB, rules ...scheduler.Rule) *rig {
	p, err := scheduler.NewPolicy(rules, nil, scheduler.Cost{})
	if err != nil {
		t.Fatal(err)
	}
	return newRig(t, rigOptions{config: target.Config{QoS: target.QoS{Policy: p}}})
}

// BenchmarkGatedCommand is BenchmarkCommand without rules, and with a reservation
// and two limits that let everything pass.
// It must report 0 allocs/op.
func BenchmarkGatedCommand(b *testing.B) {
	b.Run("no-rules", func(b *testing.B) { benchCommands(b, ruled(b), false) })
	b.Run("rules", func(b *testing.B) { benchCommands(b, ruled(b, promised), false) })
}

// TestGatedCommandsDoNotAllocate: neither those that pass the gate nor those
// that wait in it, as TestCommandsDoNotAllocate counts.
func TestGatedCommandsDoNotAllocate(t *testing.T) {
	const depth, size, rounds = 32, 4096, 20
	waits := promised
	waits.Reservation, waits.Limit.IOPS, waits.Burst.IOPS = scheduler.Rate{}, 20_000, 1 // so that they wait on a slow machine too
	for name, rule := range map[string]scheduler.Rule{"pass": promised, "wait": waits} {
		r := ruled(t, rule)
		login := r.login(initiator.Options{CmdSN: 1})
		// The coordinator's reports are made anew, some fifteen allocations every 20 ms.
		allowed := uint64(rounds * depth / 10)
		if n := mallocs(newBatch(t, login, false, depth, size), 20, rounds, allowed, 1200); n > allowed {
			t.Errorf("%s: %d allocations in %d commands", name, n, rounds*depth)
		}
		if f := r.server.QoS(initiator.DefaultInitiator).Flows; len(f) != 1 || (name == "wait") != (f[0].Counters.Waited > 0) {
			t.Errorf("%s: %+v: expected one flow, whose commands %s", name, f, name)
		}
	}
}
