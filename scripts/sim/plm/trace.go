package plm

import (
	"math"

	"lunar/scheduler/plm"
	"lunar/scripts/sim/kernel"
)

const classes = len(plm.Counts{})

// dataSet is what the classes read in a window on average.
type dataSet struct {
	name  string
	means [classes]float64
}

var dataSets = []dataSet{
	{"DS1", [classes]float64{420, 420 * .78, 420 * .71}},
	{"DS2", [classes]float64{480, 480 * .83, 480 * .72}},
	{"DS3", [classes]float64{165, 165 * .85, 165 * .70}},
}

func (d *dataSet) sum() (n float64) {
	for _, m := range d.means {
		n += m
	}
	return n
}

// configuration is a device: the reads of a window, as a multiple of the mean, and its
// length in ms.
type configuration struct {
	capacity float64
	window   int
}

var configurations = []configuration{{1.2, 100}, {1.4, 100}, {2.0, 400}, {2.5, 400}}

// windows is how many of them a run has: 900 s of them at full size.
func (c configuration) windows(reduced bool) int {
	n := 900_000 / c.window
	if reduced {
		n /= 3
	}
	return n
}

// How far the traces swing: the intensity of all classes together, which changes slowly,
// and that of each.
const (
	swing  = 0.9
	memory = 0.8
	noise  = 0.3
)

// trace draws what the classes read in each window. A class lags behind the others by its
// number of windows.
func (d *dataSet) trace(seed uint64, windows int, lag [classes]int) []plm.Counts {
	r := kernel.NewRand(seed, 3)
	most := 0
	for _, n := range lag {
		most = max(most, n)
	}
	common := make([]float64, windows+most)
	z := r.NormFloat64()
	for i := range common {
		common[i] = math.Exp(swing*z - swing*swing/2)
		z = memory*z + math.Sqrt(1-memory*memory)*r.NormFloat64()
	}
	trace := make([]plm.Counts, windows)
	for i := range trace {
		for c, mean := range d.means {
			own := math.Exp(noise*r.NormFloat64() - noise*noise/2)
			trace[i][c] = int64(math.Round(mean * common[i+most-lag[c]] * own))
		}
	}
	return trace
}
