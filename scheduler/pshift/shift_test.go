package pshift

import (
	"slices"
	"sync"
	"testing"

	"lunar/internal/arith"
	"lunar/scheduler/pshift/bqueue"
	"pgregory.net/rapid"
)

// drawInstance draws a problem of pShift.
func drawInstance(t *rapid.T, maxBuckets, maxServers int) (p *Instance, budget []int64) {
	buckets, servers := rapid.IntRange(1, maxBuckets).Draw(t, "buckets"), rapid.IntRange(1, maxServers).Draw(t, "servers")
	p = NewInstance(buckets, servers)
	copy(p.Demand, rapid.SliceOfN(rapid.Int64Range(0, 60), buckets*servers, buckets*servers).Draw(t, "demand"))
	copy(p.Capacity, rapid.SliceOfN(rapid.Int64Range(0, 200), servers, servers).Draw(t, "capacity"))
	return p, rapid.SliceOfN(rapid.Int64Range(0, 150), buckets, buckets).Draw(t, "budget")
}

// TestShiftIsMaxFlow: pShift's tokens are as effective as any can be, prudent,
// and as many per bucket as it may have.
func TestShiftIsMaxFlow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, budget := drawInstance(t, 12, 6)
		p.Allocate(budget)
		p.Shift(Options{})
		_, best := bqueue.Solve(bqueue.Problem{Budget: budget, Demand: p.Demand, Capacity: p.Capacity})
		if got := p.Effective(); got != best {
			t.Fatalf("found %d effective, expected %d as max-flow", got, best)
		}
		checkTokens(t, p, budget)
	})
}

// checkTokens checks Σ_j a = min(A, D), prudence and the totals.
func checkTokens(t *rapid.T, p *Instance, budget []int64) {
	totals := make([]int64, p.Servers)
	for i := range p.Buckets {
		d, a := p.row(p.Demand, i), p.row(p.Tokens, i)
		if got, want := arith.Sum(a), min(budget[i], arith.Sum(d)); got != want {
			t.Fatalf("bucket %d: found %d tokens, expected %d", i, got, want)
		}
		for j := range a {
			totals[j] += a[j]
			if a[j] < 0 || a[j] > d[j] {
				t.Fatalf("bucket %d on server %d: found %d tokens of %d wanted", i, j, a[j], d[j])
			}
		}
	}
	if !slices.Equal(totals, p.totals) {
		t.Fatalf("found totals %v, expected %v", p.totals, totals)
	}
}

// threads is an Executor of a goroutine per part.
func threads(parts int, work func(part int)) {
	var wg sync.WaitGroup
	for part := range parts {
		wg.Go(func() { work(part) })
	}
	wg.Wait()
}

// TestParallelIsSerial: how the work is split changes nothing.
func TestParallelIsSerial(t *testing.T) {
	for seed := range uint64(3) {
		serial, budget := randomInstance(600, 32, 6, seed)
		parallel, _ := randomInstance(600, 32, 6, seed)
		for _, topM := range []int{0, 50} {
			serial.Allocate(budget)
			serial.Shift(Options{TopM: topM})
			parallel.Allocate(budget)
			parallel.Shift(Options{TopM: topM, Run: threads, Parts: 3})
			if !slices.Equal(serial.Tokens, parallel.Tokens) {
				t.Errorf("seed %d, top %d: the results differ", seed, topM)
			}
		}
	}
}

// TestParallelUpdate: updates of an edge in parts, too small for it otherwise.
func TestParallelUpdate(t *testing.T) {
	p, budget := randomInstance(300, 16, 16, 1)
	p.Allocate(budget)
	m := newMovement(p, Options{Run: threads, Parts: 4})
	s := &shifter{movement: m}
	var changes []change
	for i := range p.Buckets {
		if amount := min(m.tokens[i*16], m.spare[i*16+1]); amount > 0 {
			changes = append(changes, s.transfer(i, 0, 1, amount))
		}
	}
	for range minParallel/16/len(changes) + 1 {
		changes = append(changes, change{}) // changes nothing
	}
	m.update(0, 1, changes)
	updated := slices.Clone(m.sums)
	if fresh := newMovement(p, Options{}); !slices.Equal(updated, fresh.sums) {
		t.Error("the updated map differs from one built anew")
	}
}

// TestTopM: leaving out small buckets moves less, never more, and breaks no
// invariant; with as many as there are it changes nothing.
func TestTopM(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, budget := drawInstance(t, 12, 6)
		p.Allocate(budget)
		before := p.Effective()
		p.Shift(Options{TopM: rapid.IntRange(1, 12).Draw(t, "m")})
		_, best := bqueue.Solve(bqueue.Problem{Budget: budget, Demand: p.Demand, Capacity: p.Capacity})
		if got := p.Effective(); got < before || got > best {
			t.Fatalf("found %d effective, expected from %d to %d", got, before, best)
		}
		checkTokens(t, p, budget)
	})
}

// TestSelectTop: the same elements come first as after sorting.
func TestSelectTop(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Uint64Range(0, 9), 1, 40).Draw(t, "values")
		v := make([]ranked, len(values))
		for i := range v {
			v[i] = ranked{i, values[i]}
		}
		sorted, n := slices.Clone(v), rapid.IntRange(0, len(v)).Draw(t, "n")
		byRank := func(a, b ranked) int {
			if a.ahead(b) {
				return -1
			}
			return 1
		}
		slices.SortFunc(sorted, byRank)
		selectTop(v, n)
		slices.SortFunc(v[:n], byRank)
		if !slices.Equal(v[:n], sorted[:n]) {
			t.Fatalf("found %v first, expected %v", v[:n], sorted[:n])
		}
	})
}

// TestTopMOfMany: with the 200 largest of 600 buckets nearly all excess that
// can be removed is.
func TestTopMOfMany(t *testing.T) {
	p, budget := randomInstance(600, 16, 8, 7)
	p.Allocate(budget)
	initial := p.WeakExcess()
	p.Shift(Options{})
	least := p.WeakExcess()
	p.Allocate(budget)
	p.Shift(Options{TopM: 200})
	if removed, removable := initial-p.WeakExcess(), initial-least; removable == 0 || removed < removable*9/10 {
		t.Errorf("found %d of %d removed, expected nine tenths", removed, removable)
	}
}

// TestControllerBudgets: R- and L-tokens of a redistribution respect
// reservation, limit, demand and what is done.
func TestControllerBudgets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, reservation := drawInstance(t, 8, 4)
		c := NewController(p.Buckets, p.Servers)
		copy(c.Demand, p.Demand)
		copy(c.Capacity, p.Capacity)
		for i := range reservation {
			c.Reservation[i] = reservation[i]
			c.Limit[i] = reservation[i] + rapid.Int64Range(0, 100).Draw(t, "above")
			c.Done[i] = rapid.Int64Range(0, 200).Draw(t, "done")
		}
		c.Redistribute()
		for i := range reservation {
			r, l, d := arith.Sum(p.row(c.R, i)), arith.Sum(p.row(c.L, i)), arith.Sum(p.row(c.Demand, i))
			left := max(0, c.Reservation[i]-c.Done[i])
			if r != min(left, d) {
				t.Fatalf("bucket %d: found %d R-tokens, expected %d", i, r, min(left, d))
			}
			if want := min(max(0, c.Limit[i]-c.Done[i]-r), d-r); l != want {
				t.Fatalf("bucket %d: found %d L-tokens, expected %d", i, l, want)
			}
		}
	})
}
