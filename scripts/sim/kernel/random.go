package kernel

import (
	"math"
	"math/rand/v2"
	"sort"
)

// NewRand returns the generator of one purpose of a run. Purposes get their
// own streams, so that one more draw for one of them leaves the others alone.
func NewRand(seed, purpose uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, purpose))
}

// ZipfWeights returns the weights 1/i^s of the ranks i = 1..n; s = 0 is uniform.
func ZipfWeights(n int, s float64) []float64 {
	w := make([]float64, n)
	for i := range w {
		w[i] = math.Pow(float64(i+1), -s)
	}
	return w
}

// Shares divides total in proportion to weights, in whole units: floors first,
// then one more for the largest remainders, the lower index on ties. The
// shares add up to total.
func Shares(total int64, weights []float64) []int64 {
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	shares := make([]int64, len(weights))
	rest := make([]float64, len(weights))
	order := make([]int, len(weights))
	left := total
	for i, w := range weights {
		exact := float64(total) * w / sum
		shares[i] = int64(exact)
		rest[i] = exact - float64(shares[i])
		order[i] = i
		left -= shares[i]
	}
	sort.SliceStable(order, func(a, b int) bool { return rest[order[a]] > rest[order[b]] })
	for i := 0; left > 0; i, left = i+1, left-1 {
		shares[order[i%len(order)]]++
	}
	return shares
}

// Draw picks ranks by their Zipf weight: table[i] is the sum of weights 0..i.
type Draw struct{ table []float64 }

// NewDraw prepares draws in proportion to weights.
func NewDraw(weights []float64) Draw {
	table := make([]float64, len(weights))
	sum := 0.0
	for i, w := range weights {
		sum += w
		table[i] = sum
	}
	return Draw{table}
}

// Next returns one index, drawn by weight.
func (d Draw) Next(r *rand.Rand) int {
	return sort.SearchFloat64s(d.table, r.Float64()*d.table[len(d.table)-1])
}
