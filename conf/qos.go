package conf

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"lunar/scheduler"
)

// QoS says who may have how much I/O, and what there is to give.
type QoS struct {
	Capacity    int64            // tokens/s that each backing device can do, but for those of Capacities; 0 learns it
	Capacities  map[string]int64 // the same of the device that a volume is on, by name of volume
	Profile     time.Duration    // how long each volume is measured at the start; 0: not at all
	Overcommit  bool             // reservations may be more than the capacity
	Window      int              // commands under way of each event thread while there are rules
	Turn        time.Duration    // for how long an event thread serves one initiator while another may go first
	Pool        scheduler.PoolMode
	Arbitration scheduler.Arbitration
	Cost        scheduler.Cost
	Network     scheduler.Network // what classes are outside of the server
	Groups      []scheduler.Group
	Rules       []scheduler.Rule
}

// NormalRules returns rules and groups in their normal form, which shares
// nothing with what was given: sorted by name, patterns in lower case, the
// weight filled in. What means the same is then equal.
func NormalRules(rules []scheduler.Rule, groups []scheduler.Group) ([]scheduler.Rule, []scheduler.Group) {
	rules, groups = append([]scheduler.Rule(nil), rules...), append([]scheduler.Group(nil), groups...)
	for i := range groups {
		groups[i].Initiators = normalPatterns(groups[i].Initiators)
	}
	for i := range rules {
		r := &rules[i]
		r.Initiators, r.Target = normalPatterns(r.Initiators), strings.ToLower(r.Target)
		r.Weight = defaultWeight(r.Weight)
		if r.LUN != nil {
			lun := *r.LUN
			r.LUN = &lun
		}
	}
	slices.SortStableFunc(rules, func(a, b scheduler.Rule) int { return strings.Compare(a.Name, b.Name) })
	slices.SortStableFunc(groups, func(a, b scheduler.Group) int { return strings.Compare(a.Name, b.Name) })
	return rules, groups
}

func normalPatterns(patterns []string) []string {
	var out []string
	for _, p := range patterns {
		out = append(out, strings.ToLower(p))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// defaultWeight makes the scheduler's default explicit.
func defaultWeight(weight int64) int64 {
	if weight == 0 {
		return 1
	}
	return weight
}

func rulePath(i int) string { return fmt.Sprintf("qos.rules[%d]", i) }
