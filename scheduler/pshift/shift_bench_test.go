package pshift

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// randomInstance is the paper's scaling set-up: every bucket wants 1.1 times
// its reservation, unevenly spread over the servers it is active on, and all
// reservations together are the capacity.
func randomInstance(buckets, servers, active int, seed uint64) (p *Instance, budget []int64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	p, budget = NewInstance(buckets, servers), make([]int64, buckets)
	const capacity = 100_000
	for j := range p.Capacity {
		p.Capacity[j] = capacity
	}
	for i := range buckets {
		budget[i] = int64(servers * capacity / buckets)
		weights, total := make([]float64, servers), 0.0
		for _, j := range rng.Perm(servers)[:active] {
			weights[j] = rng.ExpFloat64()
			total += weights[j]
		}
		for j, w := range weights {
			p.Demand[i*servers+j] = int64(1.1 * float64(budget[i]) * w / total)
		}
	}
	return p, budget
}

// BenchmarkShift is one redistribution, initial allocation included.
func BenchmarkShift(b *testing.B) {
	for _, active := range []int{8, 64} {
		for _, buckets := range []int{1000, 2500, 5000, 10000} {
			for _, topM := range []int{0, 2000} {
				if topM >= buckets {
					continue
				}
				b.Run(fmt.Sprintf("active=%d/buckets=%d/top=%d", active, buckets, topM), func(b *testing.B) {
					p, budget := randomInstance(buckets, 64, active, 1)
					for b.Loop() {
						p.Allocate(budget)
						p.Shift(Options{TopM: topM})
					}
					b.ReportMetric(float64(p.WeakExcess()), "excess")
				})
			}
		}
	}
}
