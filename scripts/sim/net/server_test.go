package net

import (
	"math/rand/v2"
	"testing"

	"lunar/scheduler/qtcp"
)

// TestReadersBeginAtAnyTime: who has come first, and knows how short a round trip is without a
// queue, does not leave the bottleneck to those who have never seen that. The packets that windows
// let through while flows hold back are a queue, too, a tenth of what delay allows.
func TestReadersBeginAtAnyTime(t *testing.T) {
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 0))
		w := near
		for c := range w.apart {
			w.apart[c] = r.Int64N(2 * Second)
		}
		for _, p := range paths[:2] {
			rates := w.rates(seed, p, false)
			for c, share := range []float64{50, 100. / 3, 100. / 6} {
				if got := 100 * rates[c] / sum(rates); got < 0.85*share || got > 1.15*share {
					t.Errorf("%s, readers begin after %v ms: %s has %.1f %%, expected %.1f", p.name, ms(w.apart), classes[c], got, share)
				}
			}
		}
	}
}

func ms(ps [qtcp.Classes]int64) (ms [qtcp.Classes]int64) {
	for i := range ps {
		ms[i] = ps[i] / Millisecond
	}
	return ms
}
