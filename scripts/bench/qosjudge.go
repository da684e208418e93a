package main

import (
	"math"
)

// What the runs have to reach.
const (
	mostMissed   = 0.02 // of a reservation, in any period
	mostExceeded = 0.01 // of a limit, in any period
	mostLost     = 0.03 // of the unscheduled total
	mostDisturbed,
	leastUnscheduled = 2.0, 5.0 // p99 with neighbours, as a multiple of it alone
)

// qosVerdict is what a scenario reached. A share is NaN where there is nothing
// to compare.
type qosVerdict struct {
	period  float64 // least share of a reservation that was served, by the server's periods
	second  float64 // the same by the client's count of each second
	limit   float64 // most share of a limit that was used in a period or second
	total   float64 // share of the unscheduled total
	mean    float64 // largest relative difference of a mean from what the scenario wants
	reached bool
}

// judge compares an outcome with the criteria; unscheduled is the same load
// without rules.
func (s *qosScenario) judge(o, unscheduled *qosOutcome) qosVerdict {
	v := qosVerdict{period: math.NaN(), second: math.NaN(), limit: math.NaN(), mean: math.NaN(), total: o.rate() / unscheduled.rate()}
	for i, c := range s.initiators {
		if c.reservation > 0 {
			v.period = least(v.period, o.leastPeriod(i))
		}
		if c.reservation > 0 && c.card == 0 { // the server's periods are others than the seconds of bursts
			v.second = least(v.second, float64(lowest(o.seconds(i)))/c.promised())
		}
		if c.limit > 0 {
			v.limit = most(v.limit, float64(max(highest(o.seconds(i)), o.mostServed(i)))/float64(c.limit))
		}
		if c.wanted > 0 {
			v.mean = most(v.mean, math.Abs(o.rateOf(i)/c.wanted-1))
		}
	}
	v.reached = !(v.period < 1-mostMissed) && !(v.second < 1-mostMissed) && !(v.limit > 1+mostExceeded) && !(v.mean > mostLost) &&
		(v.total >= 1-mostLost) != s.basic
	return v
}

// promised is what an initiator must get at least: what it reserves, or all that
// it asks for.
func (c *qosInitiator) promised() float64 {
	if c.rate > 0 {
		return min(c.rate, float64(c.reservation))
	}
	return float64(c.reservation)
}

// leastPeriod is the least share of the reservation, or of what was asked for if
// that is less, that was served in a period; NaN if no period was told.
func (o *qosOutcome) leastPeriod(i int) float64 {
	worst := math.NaN()
	for _, p := range o.periods[i] {
		if want := min(p.Reservation, p.Offered); want > 0 {
			worst = least(worst, float64(p.Served)/float64(want))
		}
	}
	return worst
}

func (o *qosOutcome) mostServed(i int) (n int64) {
	for _, p := range o.periods[i] {
		n = max(n, p.Served)
	}
	return n
}

// seconds are an initiator's commands in each whole second.
func (o *qosOutcome) seconds(i int) []int64 { return grouped(o.slices[i], slicesPerPeriod) }

// grouped adds up each n values that follow one another; a rest is left out.
func grouped(values []int64, n int) []int64 {
	sums := make([]int64, len(values)/n)
	for i := range sums {
		for _, v := range values[i*n : (i+1)*n] {
			sums[i] += v
		}
	}
	return sums
}

// rateOf is an initiator's mean rate per second.
func (o *qosOutcome) rateOf(i int) float64 {
	n := int64(0)
	for _, v := range o.slices[i] {
		n += v
	}
	return float64(n) / float64(len(o.slices[i])) * float64(slicesPerPeriod)
}

// rate is that of all together.
func (o *qosOutcome) rate() (sum float64) {
	for i := range o.slices {
		sum += o.rateOf(i)
	}
	return sum
}

// p99 is an initiator's 99th percentile of latency, ms.
func (o *qosOutcome) p99(i int) float64 { return float64(o.latency[i].ValueAtQuantile(99)) / 1e6 }

// least and most ignore what is not a number.
func least(a, b float64) float64 {
	if math.IsNaN(a) || b < a {
		return b
	}
	return a
}

func most(a, b float64) float64 {
	if math.IsNaN(a) || b > a {
		return b
	}
	return a
}

func lowest(values []int64) int64 {
	low := int64(math.MaxInt64)
	for _, v := range values {
		low = min(low, v)
	}
	return low
}

func highest(values []int64) (high int64) {
	for _, v := range values {
		high = max(high, v)
	}
	return high
}
