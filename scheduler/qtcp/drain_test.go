package qtcp

import "testing"

// TestDrain: flows that come together hold back together, soon; those that come later, after a
// rest that is long beside that; all once a minute in any case.
func TestDrain(t *testing.T) {
	const ms, trip = int64(1_000_000), 10 * int64(1_000_000)
	var d Drain
	d.began = 1 // a minute begins
	for _, step := range []struct {
		at                 int64 // ms
		came, due, holding bool
	}{
		{at: 1000},
		{at: 2000, came: true},
		{at: 2150, came: true},
		{at: 2199},
		{at: 2200, due: true, holding: true}, // for 3 round trips and 10 ms
		{at: 2239, holding: true},
		{at: 2240},
		{at: 2300, came: true},
		{at: 3519},
		{at: 3520, due: true, holding: true}, // 32 times 40 ms later
		{at: 3560},
		{at: 63519},
		{at: 63520, due: true, holding: true},
	} {
		now := step.at * ms
		if step.came {
			d.Came(now)
		}
		if due := d.Due(now); due != step.due {
			t.Errorf("at %d ms: due %v", step.at, due)
		} else if due {
			d.Begin(now, trip)
		}
		if d.Holding(now) != step.holding {
			t.Errorf("at %d ms: holding %v", step.at, !step.holding)
		}
	}
	if Met(0, ms) || !Met(ms, 2*ms) || Met(ms, drainEvery+ms) {
		t.Error("who held back within a minute has met an empty queue, and nobody else")
	}
}
