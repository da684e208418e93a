package invariants

import "testing"

func TestAssert(t *testing.T) {
	Assert(true, "holds")
	defer func() {
		if panicked := recover() != nil; panicked != Enabled {
			t.Errorf("Assert(false) panicked: %v, expected %v", panicked, Enabled)
		}
	}()
	Assert(false, "does not hold")
}
