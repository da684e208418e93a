package nest

import (
	"math/rand/v2"
	"slices"

	"lunar/scripts/sim/kernel"
	"lunar/scripts/sim/net"
)

// source asks for something at random times.
type source struct {
	kernel *kernel.Kernel
	r      *rand.Rand
	gap    float64 // ps between two requests, mean
	burst  int     // requests at once; 0 is 1
	most   int     // outstanding at once, more are not asked for; 0 is without bound
	// ask begins one, and calls ended when it has ended.
	ask func(ended func(bytes, latency int64))

	outstanding int
	from        int64 // what ends before it is not counted
	bytes       int64
	latencies   []int64 // ps
}

// start begins, and counts what ends from a time on.
func (s *source) start(from int64) {
	s.from = from
	s.burst = max(1, s.burst)
	s.plan()
}

func (s *source) plan() {
	s.kernel.At(s.kernel.Now()+int64(s.r.ExpFloat64()*s.gap*float64(s.burst)), kernel.Arrival, s, 0)
}

// Fire implements kernel.Actor.
func (s *source) Fire(int64, int32) {
	for range s.burst {
		if s.most == 0 || s.outstanding < s.most {
			s.outstanding++
			s.ask(s.ended)
		}
	}
	s.plan()
}

func (s *source) ended(bytes, latency int64) {
	s.outstanding--
	if s.kernel.Now() >= s.from {
		s.bytes += bytes
		s.latencies = append(s.latencies, latency)
	}
}

// mean is the mean latency in us.
func (s *source) mean() float64 {
	total := int64(0)
	for _, l := range s.latencies {
		total += l
	}
	return float64(total) / float64(max(1, len(s.latencies))) / float64(net.Microsecond)
}

// percentile is a latency in us.
func (s *source) percentile(p float64) float64 {
	if len(s.latencies) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s.latencies))
	return float64(sorted[int(p/100*float64(len(sorted)-1))]) / float64(net.Microsecond)
}

// rate is what has ended in Gb/s.
func (s *source) rate() float64 {
	return float64(s.bytes) * 8000 / float64(s.kernel.Now()-s.from)
}

// requests returns an ask that sends requests over connections in turn.
func requests(paths []*Path, tag Tag, write func() bool, bytes func() int64) func(func(int64, int64)) {
	turn := 0
	return func(ended func(bytes, latency int64)) {
		p := paths[turn%len(paths)]
		turn++
		r := &Request{Tag: tag, Write: write(), Bytes: bytes()}
		r.Done = func(now int64) { ended(r.Bytes, now-r.At) }
		p.Ask(r)
	}
}

// always returns a function that returns a value.
func always[T any](v T) func() T { return func() T { return v } }
