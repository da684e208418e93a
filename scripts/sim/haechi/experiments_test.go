package haechi

import (
	"crypto/sha256"
	"fmt"
	"testing"

	"lunar/scheduler"
	"lunar/scripts/sim/experiment"
	"lunar/scripts/sim/experiment/experimenttest"
)

// TestExperiments: every row's reduced size meets its criteria.
func TestExperiments(t *testing.T) {
	experimenttest.Run(t, Experiments())
}

// tiny is a cluster of a hundredth of the rate, with all three patterns.
func tiny(log *experiment.Log) *Setup {
	return &Setup{
		Clients: []Client{
			{Reservation: 3000, Demand: 5000, Pattern: Burst},
			{Reservation: 2000, Demand: 1500, Pattern: Constant},
			{Reservation: 1000, Pattern: Closed},
		},
		ClientCost: 250_000, ServerCost: 63_700, Batch: 10, QoS: true,
		Adaptive: true, Arbitration: scheduler.ReservedFirst, Warmup: 1, Periods: 2, Log: log,
	}
}

// TestSameLog: the same set-up decides the same, byte for byte.
func TestSameLog(t *testing.T) {
	logOf := func(setup func(*experiment.Log) *Setup) string {
		hash := sha256.New()
		log := experiment.NewLog(hash)
		out := Simulate(setup(log))
		if err := log.Flush(); err != nil {
			t.Fatal(err)
		}
		if len(out.Violations) > 0 {
			t.Errorf("invariants: %v", out.Violations)
		}
		return fmt.Sprintf("%x", hash.Sum(nil))
	}
	first := logOf(tiny)
	if second := logOf(tiny); second != first {
		t.Errorf("two logs of one set-up differ: %s and %s", first, second)
	}
	other := logOf(func(log *experiment.Log) *Setup {
		setup := tiny(log)
		setup.Clients[0].Reservation++
		return setup
	})
	if other == first {
		t.Error("the log does not show another reservation")
	}
}
