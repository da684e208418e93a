package scheduler

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// Flow is one initiator's use of one logical unit.
type Flow struct {
	Initiator string
	Target    string
	LUN       uint64
	// User tells those apart who claim one initiator name that is nobody's: each has
	// rules that match the name to itself. Empty for the name's owner.
	User string
}

// who is whom rules by initiator are about.
func (f *Flow) who() string {
	if f.User == "" {
		return f.Initiator
	}
	return f.Initiator + " as " + f.User
}

// Entity is what a rule applies to as a whole.
type Entity struct {
	Level Level
	Key   string // unique among all entities
	Rule  *Rule  // nil: none applies
}

// Policy is a validated set of rules. It does not change; a new set of rules
// is a new policy.
type Policy struct {
	rules  []Rule
	groups []Group
	cost   Cost

	network Network
}

// NewPolicy validates rules and groups, which the policy keeps. The error is
// Validate's and ValidateCost's.
func NewPolicy(rules []Rule, groups []Group, cost Cost) (*Policy, error) {
	if err := errors.Join(Validate(rules, groups), ValidateCost(rules, cost)); err != nil {
		return nil, err
	}
	return &Policy{rules: rules, groups: groups, cost: cost}, nil
}

// Empty reports that there is no rule: every command may pass at once.
func (p *Policy) Empty() bool { return len(p.rules) == 0 }

// Rules are the policy's rules; a Limit's Rule is an index of it.
func (p *Policy) Rules() []Rule { return p.rules }

// Patterns are the patterns of initiator names that one of the policy's rules,
// or its group, has.
func (p *Policy) Patterns(r *Rule) []string { return patternsOf(r, p.groups) }

// Cost is the policy's cost function.
func (p *Policy) Cost() Cost { return p.cost }

// Resolve returns the entities of a flow, one per level. The group has an
// empty Key if no group rule applies.
func (p *Policy) Resolve(f Flow) [levels]Entity {
	entities := [levels]Entity{
		{Level: GroupLevel},
		{Level: InitiatorLevel, Key: "initiator " + f.who()},
		{Level: NexusLevel, Key: "nexus " + f.who() + " " + f.Target + " " + strconv.FormatUint(f.LUN, 10)},
	}
	var best [levels][3]int
	for i := range p.rules {
		r := &p.rules[i]
		l, rank := r.level(), p.rank(r, f)
		if rank[0] > 0 && (entities[l].Rule == nil || less(best[l], rank)) {
			entities[l].Rule, best[l] = r, rank
		}
	}
	if r := entities[GroupLevel].Rule; r != nil {
		entities[GroupLevel].Key = "group " + r.Group
	}
	return entities
}

// rank says how specifically a rule matches a flow: by initiator, target and
// logical unit. The first is 0 if it does not match.
func (p *Policy) rank(r *Rule, f Flow) (rank [3]int) {
	if r.LUN != nil && *r.LUN != f.LUN || !matches(anyIfEmpty(r.Target), f.Target) {
		return rank
	}
	for _, pattern := range patternsOf(r, p.groups) {
		if matches(pattern, f.Initiator) {
			rank[0] = max(rank[0], 1+specificity(pattern))
		}
	}
	rank[1] = specificity(anyIfEmpty(r.Target))
	if r.LUN != nil {
		rank[2] = 1
	}
	return rank
}

func less(a, b [3]int) bool {
	for i := range a {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}

// number is a rule's index; -1 without a rule.
func (p *Policy) number(r *Rule) int {
	for i := range p.rules {
		if &p.rules[i] == r {
			return i
		}
	}
	return -1
}

// reservations adds the reservations of flows up the hierarchy.
type reservations struct {
	index  map[string]int
	names  []string
	level  []Level
	own    []int64 // tokens/s
	inner  []int64 // of all inside
	parent []int   // -1 is a root
	rule   []*Rule
	on     [][]string // devices
}

// all is what an entity reserves with all inside it.
func (s *reservations) all(i int) int64 { return max(s.own[i], s.inner[i]) }

func newReservations(p *Policy, flows []Placed) *reservations {
	s := &reservations{index: map[string]int{}}
	for _, f := range flows {
		parent := -1
		for _, e := range p.Resolve(f.Flow) {
			if e.Key != "" {
				parent = s.enter(p, e, parent)
				if !slices.Contains(s.on[parent], f.Device) {
					s.on[parent] = append(s.on[parent], f.Device)
				}
			}
		}
	}
	for i := len(s.names) - 1; i >= 0; i-- { // parents come before children
		if up := s.parent[i]; up >= 0 {
			s.inner[up] += s.all(i)
		}
	}
	return s
}

func (s *reservations) enter(p *Policy, e Entity, parent int) int {
	if i, ok := s.index[e.Key]; ok {
		return i
	}
	own, name := int64(0), e.Key
	if e.Rule != nil {
		own = p.cost.Tokens(e.Rule.Reservation)
		name = fmt.Sprintf("%s (rule %s)", e.Key, ruleName(p.rules, p.number(e.Rule)))
	}
	s.index[e.Key] = len(s.names)
	s.names, s.level, s.parent = append(s.names, name), append(s.level, e.Level), append(s.parent, parent)
	s.own, s.inner = append(s.own, own), append(s.inner, 0)
	s.rule, s.on = append(s.rule, e.Rule), append(s.on, nil)
	return len(s.names) - 1
}
