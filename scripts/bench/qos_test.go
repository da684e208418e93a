package main

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"lunar/scheduler"
)

// TestStation: a full station finishes one command per gap, an idle one takes
// its time for each.
func TestStation(t *testing.T) {
	s := newStation(1000, 4)
	for i := range int64(10) {
		if at, want := s.arrive(0), (4+i)*1e6; at != want {
			t.Errorf("command %d of those that come at once is done at %d, expected %d", i, at, want)
		}
	}
	if at := s.arrive(50e6); at != 54e6 {
		t.Errorf("after a pause: done at %d, expected %d", at, int64(54e6))
	}
	s.setRate(500)
	if at := s.arrive(50e6); at != 58e6 {
		t.Errorf("at half the speed: done at %d, expected %d", at, int64(58e6))
	}
}

// even is an outcome of three seconds with the same rates in each.
func even(rates ...int64) *qosOutcome {
	o := &qosOutcome{}
	for _, rate := range rates {
		slices := make([]int64, 3*slicesPerPeriod)
		for i := range slices {
			slices[i] = rate / int64(slicesPerPeriod)
		}
		o.slices = append(o.slices, slices)
		o.periods = append(o.periods, []scheduler.PeriodResult{{Reservation: 500, Offered: 900, Served: rate}})
		o.latency = append(o.latency, hdrhistogram.New(1, int64(time.Minute), 3))
	}
	return o
}

func TestJudge(t *testing.T) {
	reserved := qosInitiator{reservation: 500}
	tests := []struct {
		name       string
		initiators []qosInitiator
		basic      bool
		rates      []int64
		reached    bool
	}{
		{"met", []qosInitiator{reserved, {}}, false, []int64{500, 500}, true},
		{"nearly met", []qosInitiator{reserved, {}}, false, []int64{490, 500}, true},
		{"missed", []qosInitiator{reserved, {}}, false, []int64{480, 520}, false},
		{"asks for less", []qosInitiator{{reservation: 500, rate: 400}, {}}, false, []int64{500, 500}, true},
		{"within its limit", []qosInitiator{{limit: 500}, {}}, false, []int64{500, 500}, true},
		{"above its limit", []qosInitiator{{limit: 500}, {}}, false, []int64{510, 490}, false},
		{"total lost", []qosInitiator{{}, {}}, false, []int64{480, 480}, false},
		{"total lost as basic Haechi does", []qosInitiator{{}, {}}, true, []int64{480, 480}, true},
		{"mean is as wanted", []qosInitiator{{wanted: 510}, {}}, false, []int64{500, 500}, true},
		{"mean is not as wanted", []qosInitiator{{wanted: 550}, {}}, false, []int64{500, 500}, false},
	}
	for _, test := range tests {
		s := qosScenario{initiators: test.initiators, basic: test.basic}
		if v := s.judge(even(test.rates...), even(500, 500)); v.reached != test.reached {
			t.Errorf("%s: verdict %+v, expected reached %v", test.name, v, test.reached)
		}
	}
}

// TestWorstSecondCounts: one bad second of many is seen, and so is one bad
// period.
func TestWorstSecondCounts(t *testing.T) {
	s := qosScenario{initiators: []qosInitiator{{reservation: 500}}}
	for _, spoil := range []func(o *qosOutcome){
		func(o *qosOutcome) { o.slices[0][slicesPerPeriod] = 0 },
		func(o *qosOutcome) {
			o.periods[0] = append(o.periods[0], scheduler.PeriodResult{Reservation: 500, Offered: 600, Served: 400})
		},
	} {
		o := even(520)
		if !s.judge(o, even(520)).reached {
			t.Error("a good run does not reach the criteria")
		}
		spoil(o)
		if s.judge(o, even(520)).reached {
			t.Error("a run with a bad second or period reaches the criteria")
		}
	}
}

func TestPeriodWithoutDemand(t *testing.T) {
	o := even(0)
	o.periods[0] = []scheduler.PeriodResult{{Reservation: 500}, {Reservation: 500, Offered: 100, Served: 100}}
	if worst := o.leastPeriod(0); worst != 1 {
		t.Errorf("worst period %v, expected 1", worst)
	}
	o.periods[0] = o.periods[0][:1]
	if worst := o.leastPeriod(0); !math.IsNaN(worst) {
		t.Errorf("worst period %v where nothing was asked for, expected none", worst)
	}
}

// TestScenarios: reservations fit, and the names are file names.
func TestScenarios(t *testing.T) {
	for _, s := range qosScenarios(100) {
		total := int64(0)
		for _, c := range s.defaulted().initiators {
			total += c.reservation
			if c.limit > 0 && c.limit < c.reservation || c.units > s.defaulted().units {
				t.Errorf("%s: %+v", s.name, c)
			}
		}
		if all := s.rate * int64(s.defaulted().units); total > all*91/100 {
			t.Errorf("%s: %d reserved of %d, expected at most 91 %%", s.name, total, all)
		}
		if strings.ContainsAny(s.name, " /.") || s.paper == "" || s.expected == "" {
			t.Errorf("scenario %+v", s)
		}
	}
	if err := knownNames([]string{"noisy", "pshift-3a"}, qosScenarios(100), saturations()); err != nil {
		t.Error(err)
	}
	if knownNames([]string{"pshift-9"}, qosScenarios(100), saturations()) == nil {
		t.Error("pshift-9 is known")
	}
}

// TestRunOfAScenario runs a small one, with rules and without, and draws it.
func TestRunOfAScenario(t *testing.T) {
	s := qosScenario{name: "small", title: "small", rate: 500, units: 2, figure: true,
		initiators: []qosInitiator{{reservation: 100, depth: 4}, {limit: 100, depth: 4, units: 2}, {rate: 50}}}
	var r qosResult
	for _, ruled := range []bool{false, true} {
		o, err := s.run(context.Background(), ruled, 50*time.Millisecond, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		for i := range s.initiators {
			if o.rateOf(i) == 0 || o.p99(i) == 0 {
				t.Errorf("with rules %v, initiator %d: %.0f per second, p99 %.2f ms", ruled, i, o.rateOf(i), o.p99(i))
			}
		}
		if ruled {
			r.outcome = o
		} else {
			r.unscheduled = o
		}
	}
	r.scenario, r.verdict = s, s.judge(r.outcome, r.unscheduled)
	if text := criteriaTable([]qosResult{r}) + initiatorTables([]qosResult{r}); !strings.Contains(text, "(qos/small.svg)") || strings.Contains(text, "NaN") {
		t.Errorf("document:\n%s", text)
	}
	if err := drawQoS(t.TempDir(), []qosResult{r}, noisyRuns{r.outcome, r.outcome, r.outcome}); err != nil {
		t.Error(err)
	}
}
