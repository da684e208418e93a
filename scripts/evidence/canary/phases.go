package canary

import (
	"slices"
	"time"
)

// Phases are times of a canary alone and, each right after it, with what is tried.
type Phases struct{ Alone, With []Slice }

// Add notes a phase.
func (p *Phases) Add(alone, with Slice) {
	p.Alone, p.With = append(p.Alone, alone), append(p.With, with)
}

// Longest command with what is tried, of all phases.
func (p *Phases) Longest() (d time.Duration) {
	for _, s := range p.With {
		d = max(d, s.Longest)
	}
	return d
}

// Ratio is the median over the phases of what a figure is to that alone.
func (p *Phases) Ratio(of func(Slice) float64) float64 {
	var ratios []float64
	for i := range p.With {
		if alone := of(p.Alone[i]); alone != 0 {
			ratios = append(ratios, of(p.With[i])/alone)
		} else {
			ratios = append(ratios, 0) // of nothing
		}
	}
	return Median(ratios, func(x float64) float64 { return x })
}

// P99 is that of a slice, in milliseconds.
func P99(s Slice) float64 { return Milliseconds(s.P99) }

// Rate is that of a slice.
func Rate(s Slice) float64 { return s.Rate }

// Median of a figure; 0 of none.
func Median[T any](all []T, of func(T) float64) float64 {
	var values []float64
	for _, one := range all {
		values = append(values, of(one))
	}
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// Milliseconds of a duration.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
