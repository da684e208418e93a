package target_test

import (
	"slices"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/internal/evloop"
	"lunar/scheduler"
)

// TestHardPoolHolds: in each period no more tokens are used than the capacity
// has, but for what the engines fetched and did not use in the one before, and
// for what a command may owe.
func TestHardPoolHolds(t *testing.T) {
	const capacity = 2000 // tokens in a period
	engines := int64(3 * churners)
	rule := scheduler.Rule{Name: "always", Initiators: []string{"iqn.2026-11.lunar:nobody"}, Weight: 1}
	r, began := churnRig(t, scheduler.HardPool, capacity), time.Now()
	highest := int64(capacity)
	tokens := churn(t, r, churnOptions{seed: 2, always: []scheduler.Rule{rule}, unreserved: true}, func() {
		time.Sleep(churnTime(t))
		highest = max(highest, slices.Max(append(r.server.QoS("").Devices[0].History, 0)))
	})
	took := time.Since(began)
	periods := int64(took/churnPeriod) + 2
	if most := periods * (highest*102/100 + engines*(10+slotBlocks/8)); tokens > most {
		t.Errorf("%d tokens in %v, expected at most %d", tokens, took, most)
	}
}

// copied is a store that lends nothing, and does nothing at once: what memory has or takes at once
// costs no tokens of the device.
type copied struct{ backstore.Store }

func (c copied) Lane(loop *evloop.Loop) (backstore.Lane, error) {
	lane, err := c.Store.Lane(loop)
	return copiedLane{lane}, err
}

type copiedLane struct{ backstore.Lane }

func (copiedLane) TryNow(*backstore.Op) bool { return false }
