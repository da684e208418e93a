package main

import (
	"maps"
	"math"
	"sync"
)

// figures are what an attack counted, by name; those that end with "/s" are rates.
type figures map[string]float64

// tally counts, from any goroutine.
type tally struct {
	mu    sync.Mutex
	found figures
}

func newTally() *tally { return &tally{found: figures{}} }

func (t *tally) add(name string, n float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.found[name] += n
}

// atLeast keeps the greatest.
func (t *tally) atLeast(name string, n float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.found[name] = max(t.found[name], n)
}

func (t *tally) figures() figures {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.found)
}

// sum adds up a figure of all phases.
func sum(all []figures, name string) (n float64) {
	for _, f := range all {
		n += f[name]
	}
	return n
}

func hundredths(x float64) float64 { return math.Round(100*x) / 100 }

// ratio is 0 of nothing.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
