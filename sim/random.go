package sim

import (
	"math"
	"math/rand/v2"
	"sort"
)

// NewRand returns a seeded generator.
func NewRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x6c756e6172)) }

// Zipf draws ranks from 0 with probability proportional to 1/(rank+1)^s, for any
// s >= 0.
type Zipf struct {
	r   *rand.Rand
	cdf []float64
}

// NewZipf returns a generator of n ranks.
func NewZipf(r *rand.Rand, n int, s float64) *Zipf {
	z := &Zipf{r: r, cdf: make([]float64, n)}
	sum := 0.0
	for i := range z.cdf {
		sum += math.Pow(float64(i+1), -s)
		z.cdf[i] = sum
	}
	return z
}

// Draw returns a rank.
func (z *Zipf) Draw() int {
	x := z.r.Float64() * z.cdf[len(z.cdf)-1]
	return sort.Search(len(z.cdf)-1, func(i int) bool { return z.cdf[i] > x })
}

// Exponential draws a time with the given mean, in ns.
func Exponential(r *rand.Rand, mean float64) int64 { return int64(r.ExpFloat64() * mean) }
