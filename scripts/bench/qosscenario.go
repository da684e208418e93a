package main

import (
	"fmt"

	"lunar/scheduler"
)

// qosScenario is one experiment of the papers, scaled. Rates are commands per
// second.
type qosScenario struct {
	name, title string
	paper       string // what the paper shows
	expected    string // what is expected here, besides the criteria that hold for all
	rate        int64  // of each device
	overlap     int    // commands that each device takes at once, and the gates' window; 0 is 16
	units       int    // logical units, each a device with an event thread of its own; 0 is 1
	basic       bool   // basic Haechi: nothing unused is handed on, and none goes beyond the tokens
	initiators  []qosInitiator
	drop        float64 // share of the device that others take in the middle third of the run
	figure      bool
}

// qosInitiator is one initiator's part in a scenario.
type qosInitiator struct {
	reservation, limit int64 // 0: none
	units              int   // it uses the first so many logical units; 0 is 1
	depth              int   // outstanding on each; 0 is 64
	rate               float64
	card               float64 // most that its own network card lets pass; then what rate asks for comes all at once at the start of each second; 0: any
	wanted             float64 // mean rate that must come out; 0: any
}

// The papers' rates in thousands per second.
const (
	haechiCapacity = 1570
	haechiCard     = 400e3 // C_L, per second
	pshiftCapacity = 50
	pshiftScale    = 25.0 // of the rates of pShift, whose devices are slower
)

// zipfReservations are those of Haechi's experiments, in thousands: five pairs.
var zipfReservations = []float64{236.05, 236.05, 155.73, 155.73, 122.10, 122.10, 102.75, 102.75, 89.87, 89.87}

// uniformReservations are 90 % of the capacity, shared equally.
var uniformReservations = repeated(10, 141.3)

func repeated(n int, v float64) []float64 {
	all := make([]float64, n)
	for i := range all {
		all[i] = v
	}
	return all
}

// scaled returns reservations of a share of the papers' rates.
func scaled(thousands []float64, share, scale float64) []qosInitiator {
	all := make([]qosInitiator, len(thousands))
	for i, k := range thousands {
		all[i].reservation = int64(k * 1000 * share / scale)
	}
	return all
}

// halfIdle lets the first two initiators ask for half of what they reserve.
func halfIdle(all []qosInitiator) []qosInitiator {
	for i := range 2 {
		all[i].rate = float64(all[i].reservation) / 2
	}
	return all
}

// steady are the initiators of Haechi's set 3 at constant rates.
func steady(scale float64) []qosInitiator {
	all := make([]qosInitiator, 10)
	for i := range all {
		if i < 3 {
			all[i] = qosInitiator{reservation: int64(285e3 / scale), rate: 340e3 / scale}
		} else {
			all[i] = qosInitiator{reservation: int64(80e3 / scale), rate: 80e3 / scale}
		}
	}
	return all
}

// bursting are those of set 3 whose commands come all at once.
func bursting(scale float64) []qosInitiator {
	all := steady(scale)
	for i := range all {
		all[i].card = haechiCard / scale
	}
	return all
}

// spread are pShift's four buckets: the i-th is on i servers.
func spread(reservation, limit float64) []qosInitiator {
	all := make([]qosInitiator, 4)
	for i := range all {
		all[i] = qosInitiator{reservation: int64(reservation / pshiftScale), limit: int64(limit / pshiftScale), units: i + 1}
	}
	return all
}

// unruledRates are what the buckets get from devices that treat all alike.
var unruledRates = []float64{12500, 29166, 54166, 104166}

func unruled() []qosInitiator {
	all := spread(0, 0)
	for i := range all {
		all[i].wanted = unruledRates[i] / pshiftScale
	}
	return all
}

// qosScenarios lists all scenarios; Haechi's rates are divided by scale.
func qosScenarios(scale float64) []qosScenario {
	haechi, pshift := int64(haechiCapacity*1000/scale), int64(pshiftCapacity*1000/pshiftScale)
	zipf := func(share float64) []qosInitiator { return scaled(zipfReservations, share, scale) }
	uniform := func(share float64) []qosInitiator { return scaled(uniformReservations, share, scale) }
	return []qosScenario{
		{name: "haechi-2a-uniform", title: "Haechi 2A, uniform, 90 % reserved", rate: haechi, initiators: uniform(1),
			paper: "all met, throughput loss below 0.1 %", expected: "all met"},
		{name: "haechi-2a-zipf", title: "Haechi 2A, Zipf 0.6, 90 % reserved", rate: haechi, initiators: zipf(1), figure: true,
			paper: "all met; C5 to C10 get less than without rules", expected: "all met"},
		{name: "haechi-2b-uniform", title: "Haechi 2B, uniform, C1 and C2 ask for half", rate: haechi, initiators: halfIdle(uniform(1)),
			paper: "C3 to C10 get what C1 and C2 leave; total as without rules", expected: "all met"},
		{name: "haechi-2b-zipf", title: "Haechi 2B, Zipf, C1 and C2 ask for half", rate: haechi, initiators: halfIdle(zipf(1)),
			paper: "as uniform", expected: "all met"},
		{name: "haechi-2b-zipf-basic", title: "Haechi 2B, Zipf, basic Haechi", rate: haechi, initiators: halfIdle(zipf(1)), basic: true,
			paper: "wastes what C1 and C2 leave", expected: "all met, total below full Haechi's"},
		{name: "haechi-3", title: "Haechi 3, constant rates, 90 % reserved", rate: haechi, initiators: steady(scale),
			paper: "C1 to C3 exceed their reservations, loss 0.7 %", expected: "all met"},
		{name: "haechi-3-burst", title: "Haechi 3, all at once each second, 90 % reserved", rate: haechi, initiators: bursting(scale),
			paper: "C1 to C3 get 278 of 285, total 12.9 % below the capacity (equal share)", expected: "all met: reservations are spread over the period"},
		{name: "haechi-4", title: "Haechi 4, Zipf, 80 % reserved, others take 10 % of the device for a third of the time", rate: haechi,
			initiators: zipf(8.0 / 9), drop: 0.1, figure: true,
			paper: "total drops and recovers; C1 misses first, then recovers (equal share)", expected: "all met, before, meanwhile and after"},
		{name: "pshift-3a", title: "pShift 3a, no rules", rate: pshift, units: 4, initiators: unruled(), figure: true,
			paper: "12,500, 29,166, 54,166 and 104,166", expected: "the same divided by 25, within 3 %"},
		{name: "pshift-3b", title: "pShift 3b, reservations", rate: pshift, units: 4, initiators: spread(30e3, 0), figure: true,
			paper: "all at least 30,000, B1 exactly", expected: "all met"},
		{name: "pshift-3c", title: "pShift 3c, reservations and limits", rate: pshift, units: 4, initiators: spread(30e3, 60e3), figure: true,
			paper: "all at least 30,000 and at most 60,000", expected: "all met, none above its limit"},
	}
}

// noisy is the reserved initiator with its neighbours: two at depth 128.
func noisy(neighbours int) qosScenario {
	s := qosScenario{name: "noisy", title: "two neighbours at depth 128", rate: 8000,
		initiators: []qosInitiator{{reservation: 3000, depth: 4}}}
	for range neighbours {
		s.initiators = append(s.initiators, qosInitiator{depth: 128})
	}
	return s
}

// defaulted fills the zero values in.
func (s qosScenario) defaulted() qosScenario {
	s.overlap, s.units = or(s.overlap, 16), or(s.units, 1)
	s.initiators = append([]qosInitiator(nil), s.initiators...)
	for i := range s.initiators {
		c := &s.initiators[i]
		c.units, c.depth = or(c.units, 1), or(c.depth, 64)
	}
	return s
}

func or(v, otherwise int) int {
	if v == 0 {
		return otherwise
	}
	return v
}

// initiatorName is the iSCSI name of the i-th initiator.
func initiatorName(i int) string { return fmt.Sprintf("iqn.2026-11.lunar.bench:c%d", i+1) }

// rules are the scenario's as a configuration would have them. Who has nothing
// reserved has a rule all the same, so that its periods are told.
func (s *qosScenario) rules() []scheduler.Rule {
	all := make([]scheduler.Rule, len(s.initiators))
	for i, c := range s.initiators {
		all[i] = scheduler.Rule{Name: fmt.Sprintf("c%d", i+1), Initiators: []string{initiatorName(i)},
			Reservation: scheduler.Rate{IOPS: c.reservation}, Limit: scheduler.Rate{IOPS: c.limit}}
	}
	return all
}

// ruled reports whether anything is reserved or limited.
func (s *qosScenario) ruled() bool {
	for _, c := range s.initiators {
		if c.reservation > 0 || c.limit > 0 {
			return true
		}
	}
	return false
}
