package pshift

import (
	"slices"
	"testing"
)

// instance builds one from rows per bucket.
func instance(capacity []int64, demand, tokens [][]int64) *Instance {
	p := NewInstance(len(demand), len(capacity))
	copy(p.Capacity, capacity)
	for i := range demand {
		copy(p.row(p.Demand, i), demand[i])
		if tokens != nil {
			copy(p.row(p.Tokens, i), tokens[i])
		}
	}
	p.count()
	return p
}

func wantTokens(t *testing.T, p *Instance, want ...[]int64) {
	t.Helper()
	if flat := slices.Concat(want...); !slices.Equal(p.Tokens, flat) {
		t.Errorf("found tokens %v, expected %v", p.Tokens, flat)
	}
}

func wantEffective(t *testing.T, p *Instance, want int64) {
	t.Helper()
	if got := p.Effective(); got != want {
		t.Errorf("found %d effective, expected %d", got, want)
	}
}

// The worked examples of the pShift paper.

func TestShiftOfTwoBuckets(t *testing.T) {
	p := instance([]int64{100, 100}, [][]int64{{150, 50}, {50, 50}}, nil)
	p.Allocate([]int64{100, 100})
	wantTokens(t, p, []int64{75, 25}, []int64{50, 50})
	if p.Total(0) != 125 || p.Total(1) != 75 || p.WeakExcess() != 25 {
		t.Errorf("found totals %d and %d, excess %d, expected 125, 75, 25", p.Total(0), p.Total(1), p.WeakExcess())
	}
	wantEffective(t, p, 175)
	m := newMovement(p, Options{})
	if m.sums[1] != 25 || m.sums[2] != 25 {
		t.Errorf("found map %v, expected 25 both ways", m.sums)
	}
	p.Shift(Options{})
	wantTokens(t, p, []int64{50, 50}, []int64{50, 50})
	wantEffective(t, p, 200)
}

func TestShiftRoundACircle(t *testing.T) {
	p := instance([]int64{100, 100, 100}, [][]int64{{150, 50, 0}, {0, 150, 50}, {50, 0, 50}}, nil)
	p.Allocate([]int64{100, 100, 100})
	wantTokens(t, p, []int64{75, 25, 0}, []int64{0, 75, 25}, []int64{50, 0, 50})
	wantEffective(t, p, 275)
	if m := newMovement(p, Options{}); !slices.Equal(m.sums, []int64{0, 25, 0, 25, 0, 25, 0, 25, 0}) {
		t.Errorf("found map %v", m.sums)
	}
	p.Shift(Options{})
	wantTokens(t, p, []int64{50, 50, 0}, []int64{0, 50, 50}, []int64{50, 0, 50})
	wantEffective(t, p, 300)
}

func TestIntrinsicExcessStays(t *testing.T) {
	p := instance([]int64{100}, [][]int64{{100}, {100}}, nil)
	p.Allocate([]int64{100, 100})
	p.Shift(Options{})
	wantTokens(t, p, []int64{100}, []int64{100})
	wantEffective(t, p, 100)
	if p.WeakExcess() != 100 {
		t.Errorf("found weak excess %d, expected 100", p.WeakExcess())
	}
}

func TestAllocationRoundsToTheBudget(t *testing.T) {
	for _, c := range []struct {
		budget       int64
		demand, want []int64
	}{
		{10, []int64{5, 5, 5}, []int64{4, 3, 3}},
		{7, []int64{3, 3, 4}, []int64{2, 2, 3}},
		{150, []int64{60, 40, 20}, []int64{60, 40, 20}},
		{5, []int64{0, 0, 0}, []int64{0, 0, 0}},
	} {
		p := instance([]int64{1000, 1000, 1000}, [][]int64{c.demand}, nil)
		p.Allocate([]int64{c.budget})
		wantTokens(t, p, c.want)
	}
}

func TestLimitBudget(t *testing.T) {
	if got := LimitBudget(60, 20, 10); got != 30 {
		t.Errorf("found %d, expected 30", got)
	}
}

func TestEstimates(t *testing.T) {
	if got := EstimateDemand(40, 100, 3); got != 340 {
		t.Errorf("found demand %d, expected 340", got)
	}
	if got := EstimateCapacity(900, 3); got != 2700 {
		t.Errorf("found capacity %d, expected 2700", got)
	}
}

// TestNowhereToMove: the movement map, which costs most, is not made when no server has room.
func TestNowhereToMove(t *testing.T) {
	p := instance([]int64{50, 125}, [][]int64{{150, 50}, {50, 100}}, nil)
	p.Allocate([]int64{100, 150})
	p.Shift(Options{})
	wantTokens(t, p, []int64{75, 25}, []int64{50, 100})
	if p.moves != nil {
		t.Error("found a map, expected none: no server has room")
	}
	if p.Capacity[1]++; !p.movable() {
		t.Error("found nothing to move, expected that there is room for one")
	}
}
