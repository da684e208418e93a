package pshift

import (
	"crypto/sha256"
	"fmt"
	"testing"

	"lunar/scripts/sim/experiment"
	"lunar/scripts/sim/experiment/experimenttest"
)

// TestExperiments: every row's reduced size meets its criteria.
func TestExperiments(t *testing.T) {
	experimenttest.Run(t, Experiments())
}

// TestSameLog: the same seed decides the same, byte for byte, and another seed
// does not.
func TestSameLog(t *testing.T) {
	logOf := func(seed uint64) string {
		hash := sha256.New()
		env := &experiment.Env{Seed: seed, Reduced: true, Log: hash}
		for _, c := range run5(env).Checks {
			if c.Name == "invariants" && c.Verdict == experiment.Fail {
				t.Error(c.Measured)
			}
		}
		return fmt.Sprintf("%x", hash.Sum(nil))
	}
	first := logOf(7)
	if second := logOf(7); second != first {
		t.Errorf("two logs of one seed differ: %s and %s", first, second)
	}
	if other := logOf(8); other == first {
		t.Error("the logs of two seeds are the same")
	}
}
