package net

import (
	"fmt"

	"lunar/scheduler/qtcp"
	"lunar/scripts/sim/experiment"
)

// steady is for how many slots Q has to stay within a tenth of 1.
const steady = 50

// converge returns the slot from which Q of all flows stays near 1; false if it never does.
func converge(s *slots, most int) (slot int, ok bool) {
	from := 0
	for s.slot < most {
		s.step()
		for _, f := range s.flows {
			if f.quality < 0.9 || f.quality > 1.1 {
				from = s.slot
			}
		}
		if s.slot-from >= steady {
			return from, true
		}
	}
	return most, false
}

func runConvergence(env *experiment.Env) (r experiment.Result) {
	const most = 2000
	for _, c := range []struct {
		trip  float64
		most  float64 // slots, expected
		slots float64 // at most, by the thesis
		paper string
	}{{25, 100, 50, "50"}, {62, 150, 40, "30-40"}, {98, 220, 40, "30-40"}} {
		what := fmt.Sprintf("round trip of %g us: ", c.trip)
		s := newSlots(100, c.trip, three(ruleOf(env, QTCP))...)
		slot, _ := converge(s, most)
		r.Model()
		r.AtMost(what+"slots until Q stays", c.paper, float64(slot), c.most)
		r.Paper(quality)
		r.Claim(what+"slots as in the thesis", c.paper, fmt.Sprintf("≤%g", c.slots), fmt.Sprint(slot), float64(slot) <= c.slots,
			"behind slow start a window grows by a packet in a round trip, and the flow with the largest share has most to grow")
		s.run(settle)
		low, high := tail(s)
		r.Paper(quality)
		r.Require(what+"Q afterwards", "0.95-1", "0.95 to 1.05", fmt.Sprintf("%.3f to %.3f", low, high), low >= 0.95 && high <= 1.05)
	}
	return r
}

// tail is between what the mean Q of flows lies from here on.
func tail(s *slots) (low, high float64) {
	mean := make([]float64, len(s.flows))
	for range settle {
		s.step()
		for i, f := range s.flows {
			mean[i] += f.quality / settle
		}
	}
	low, high = mean[0], mean[0]
	for _, q := range mean {
		low, high = min(low, q), max(high, q)
	}
	return low, high
}

var (
	alone    = shares{[]float64{49.8, 33.3, 16.8}, printed.paper, 1}
	joint    = shares{[]float64{49.8, 33.3, 8.5}, [...]string{"untouched", "untouched", "half"}, 1}
	squeezed = shares{[]float64{34.1, 24.3, 12.3}, [...]string{"backs off", "backs off", "backs off"}, 2}
	released = shares{[]float64{49.5, 33.3, 17.1}, [...]string{"recovers", "recovers", "recovers"}, 2}
)

func runJoin(env *experiment.Env) (r experiment.Result) {
	const third = 2000
	rule := ruleOf(env, QTCP)
	second := &slotFlow{rule: rule, class: qtcp.Low, offered: offered[qtcp.Low] * gigabit, from: third, to: 2 * third}
	s := newSlots(100, 25, append(three(rule), second)...)
	before := phase(s, third)
	joined := phase(s, third)
	after := phase(s, third)
	alone.near(&r, quality, "before, Gb/s: ", before)
	joint.near(&r, quality, "with two Low, Gb/s: ", joined)
	r.Paper(quality)
	r.Near("with two Low, Gb/s: the second", "half", joined[3], 8.5, 1/8.5)
	alone.near(&r, quality, "afterwards, Gb/s: ", after)
	return r
}

// phase runs a phase of a run, and returns the rates of all but its first part.
func phase(s *slots, n int) []float64 {
	s.run(n / 5)
	return s.run(n - n/5)
}

func runInterference(env *experiment.Env) (r experiment.Result) {
	const from, to = 765, 2551 // slots of 98 us: 75 and 250 ms
	rule := ruleOf(env, QTCP)
	other := &slotFlow{rule: DCTCP, foreign: true, offered: 40 * gigabit, from: from, to: to}
	s := newSlots(100, 98, append(three(rule), other)...)
	s.fixed = !env.Decides(estimate)
	phase(s, from)
	meanwhile := phase(s, to-from)
	left := s.device.Estimate() / gigabit
	after := phase(s, to-from)
	squeezed.near(&r, estimate, "meanwhile, Gb/s: ", meanwhile)
	r.Model()
	r.Near("meanwhile, Gb/s: the other flow", "", meanwhile[3], 29.4, 2/29.4)
	r.Note("estimate meanwhile, Gb/s", "", experiment.Num(left), "")
	released.near(&r, quality, "afterwards, Gb/s: ", after)
	return r
}

func runCoexistence(env *experiment.Env) (r experiment.Result) {
	race := func(windowed Rule) (first, later []float64) {
		b := newBottleneck(25*Microsecond, false, false)
		for _, rule := range []Rule{windowed, DCQCN} {
			b.add(b.control(rule, qtcp.High), 100)
		}
		first = b.rates(Millisecond / 2)
		b.rates(30 * Millisecond)
		return first, b.rates(30 * Millisecond)
	}
	first, later := race(DCTCP)
	r.Model() // neither is ours
	r.Require("DCTCP and DCQCN, first, Gb/s", "DCQCN grabs", "DCQCN more", fmt.Sprintf("%.1f : %.1f", first[0], first[1]), first[1] > first[0])
	r.Require("DCTCP and DCQCN, later, Gb/s", "DCTCP wins", "DCTCP more", fmt.Sprintf("%.1f : %.1f", later[0], later[1]), later[0] > later[1])
	_, later = race(ruleOf(env, QTCP))
	r.Paper(quality)
	r.Near("QTCP and DCQCN: share of QTCP in %", "50.00", 100*later[0]/sum(later), 50, 0.1)
	return r
}
