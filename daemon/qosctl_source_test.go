package daemon

import (
	"testing"

	"lunar/scheduler"
	"lunar/target"
)

// TestExplainSums: a flow's parts on all threads, and what is left of queues
// that are gone, are one; reservation tokens of an entity that flows of a thread
// share count once. Names that only differ in what is not UTF-8 are one.
func TestExplainSums(t *testing.T) {
	p, err := scheduler.NewPolicy([]scheduler.Rule{
		{Name: "all", Group: "g", Limit: scheduler.Rate{IOPS: 1000}},
		{Name: "gold", Initiators: []string{"a*"}, Reservation: scheduler.Rate{Bytes: 40960, IOPS: 3}},
	}, []scheduler.Group{{Name: "g", Initiators: []string{"*"}}}, scheduler.Cost{})
	if err != nil {
		t.Fatal(err)
	}
	part := func(initiator string, lun uint64, thread int, n int64) (x scheduler.Explanation) {
		x.Flow, x.Thread, x.Waiting = scheduler.Flow{Initiator: initiator, Target: "t", LUN: lun}, thread, 1
		x.Counters = scheduler.Counters{Offered: 10 * n, Served: 9 * n, Waited: n * 1e9}
		x.Effects = []scheduler.Effect{{Rule: "all", HeldIOPS: n * 1e9}, {Rule: "gold", Level: scheduler.InitiatorLevel, Reserved: 5 * n}}
		x.Waits.Add(3000)
		return x
	}
	served := &target.QoSStatus{
		Flows: []scheduler.Explanation{part("a\xff", 1, 0, 1), part("a\xff", 0, 0, 1), part("a\xff", 0, 1, 2), part("a\xfe", 0, 2, 4), part("a\xff", 0, -1, 8)},
		Attainment: map[string][]scheduler.PeriodResult{
			"initiator a\xff": {{Reservation: 10, Offered: 20, Served: 9}},
		},
		Fulfilment: map[string]scheduler.Fulfilment{"initiator a\xff": {Met: 1, Missed: 2, Unused: 7}},
	}
	x := explain(p, served)
	if len(x.Flows) != 2 || x.Flows[0].LUN != 0 || x.Flows[1].LUN != 1 || x.Rules != 2 {
		t.Fatalf("found %+v, expected the flows of both LUNs, in order", x.Flows)
	}
	f := x.Flows[0]
	if f.Initiator != "a\uFFFD" || !f.Open || f.Threads != 3 || f.Offered != 150 || f.Served != 135 || f.Waiting != 4 || f.Queue.Count != 4 || f.Queue.Sum != 15 {
		t.Errorf("found %+v", f)
	}
	if b := f.Queue.Buckets; b[0].Count != 0 || b[1].Count != 4 || b[1].Below != 4096e-9 || len(b) != 12 {
		t.Errorf("found %+v, expected four times of 3 µs", b)
	}
	if len(f.Rules) != 2 || f.Rules[0].Rule != "all" || f.Rules[0].Level != "group" || f.Rules[0].HeldIOPS != 15 || f.Rules[0].Limit.IOPS != 1000 || f.Rules[1].Reservation.Bytes != 40960 {
		t.Errorf("found %+v", f.Rules)
	}
	if one := x.Flows[1]; one.Rules[1].Tokens != 5+10+20 {
		t.Errorf("%d tokens are left, expected those of three threads, each once", one.Rules[1].Tokens)
	}
	if len(x.Promises) != 1 || x.Promises[0].Name != "a\uFFFD" || x.Promises[0].Reservation != 10 || x.Promises[0].Missed != 2 || x.Promises[0].Unused != 7 || x.Promises[0].Periods[0].Met {
		t.Errorf("found %+v", x.Promises)
	}
}
