package target_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"lunar/scheduler"
)

// ruleChanger puts one set of random rules after another into force.
type ruleChanger struct {
	*rig
	options churnOptions
	rng     *rand.Rand
	number  int
}

func (c *ruleChanger) change() {
	p := &scheduler.Policy{}
	if len(c.options.always) > 0 || c.number%4 != 3 {
		p = churnRules(c.t, c.rng, c.options)
	}
	c.number++
	c.server.SetQoS(p)
	checkFlows(c.t, c.server.QoS(""))
}

func (c *ruleChanger) changes(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(c.rng.Int64N(int64(60 * time.Millisecond)))):
			c.change()
		}
	}
}

// churnRules are random rules, after those that are always there.
func churnRules(t testing.TB, rng *rand.Rand, o churnOptions) *scheduler.Policy {
	lun := uint64(0)
	limit := scheduler.Rate{IOPS: 2000 + rng.Int64N(20_000)}
	if rng.IntN(2) == 0 {
		limit.Bytes = 8<<20 + rng.Int64N(64<<20)
	}
	all := []scheduler.Rule{
		{Name: "everyone", Initiators: []string{"*"}, Limit: limit, Weight: 1 + rng.Int64N(4)},
		{Name: "unit", Initiators: []string{"*"}, LUN: &lun, Class: scheduler.Class(rng.IntN(4)), Limit: limit},
	}
	if !o.unreserved {
		all = append(all, scheduler.Rule{Name: "group", Group: "some", Reservation: scheduler.Rate{IOPS: rng.Int64N(200)}},
			scheduler.Rule{Name: "one", Initiators: []string{churnName(0)}, Reservation: scheduler.Rate{IOPS: rng.Int64N(200)}, Class: scheduler.Class(rng.IntN(4))})
	}
	from := rng.IntN(len(all))
	list := append(slices.Clone(o.always), all[from:from+rng.IntN(len(all)-from+1)]...)
	p, err := scheduler.NewPolicy(list, []scheduler.Group{{Name: "some", Initiators: []string{churnName(0), churnName(1)}}}, scheduler.Cost{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}
