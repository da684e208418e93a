package scheduler

import (
	"errors"
	"fmt"
)

// RuleError says what is wrong with a rule.
type RuleError struct {
	Index  int    // the rule's place in the list, from 0
	Rule   string // the rule's name, or its place in the list from 1 if it has none
	Field  string // of Rule, in the configuration's spelling
	Reason string // what was found and what was expected
}

// Error names rule, key and reason.
func (e *RuleError) Error() string {
	return fmt.Sprintf("qos rule %s: %s: %s", e.Rule, e.Field, e.Reason)
}

// check collects the errors of one rule.
type check struct {
	index int
	name  string
	errs  []error
}

func (c *check) add(field, format string, args ...any) {
	c.errs = append(c.errs, &RuleError{c.index, c.name, field, fmt.Sprintf(format, args...)})
}

// Validate tests rules and groups; the error joins a *RuleError for everything
// that is wrong.
func Validate(rules []Rule, groups []Group) error {
	var errs []error
	names := map[string]bool{}
	overlapping, _ := rivals(rules, groups)
	for i := range rules {
		c := &check{index: i, name: ruleName(rules, i)}
		if names[c.name] {
			c.add("name", "found twice, expected once")
		}
		names[c.name] = true
		c.match(&rules[i], groups)
		c.rates(&rules[i])
		if o, found := overlapping[i]; found {
			c.add("initiators", "found %q, which rule %s matches as specifically, expected one rule to be more specific", o.pattern, ruleName(rules, o.rule))
		}
		errs = append(errs, c.errs...)
	}
	return errors.Join(errs...)
}

func ruleName(rules []Rule, i int) string {
	if rules[i].Name != "" {
		return rules[i].Name
	}
	return fmt.Sprintf("#%d", i+1)
}

// match checks whom the rule is about.
func (c *check) match(r *Rule, groups []Group) {
	switch {
	case len(r.Initiators) == 0 && r.Group == "":
		c.add("initiators", "found neither initiators nor group, expected one")
	case len(r.Initiators) > 0 && r.Group != "":
		c.add("group", "found initiators as well, expected one of the two")
	case r.Group != "" && patternsOf(r, groups) == nil:
		c.add("group", "found %q, expected the name of a group with initiators", r.Group)
	}
	for _, pattern := range r.Initiators {
		if pattern == "" {
			c.add("initiators", "found an empty pattern, expected an initiator name or pattern")
		}
	}
}

// patternsOf are the initiator patterns that a rule matches.
func patternsOf(r *Rule, groups []Group) []string {
	if r.Group == "" {
		return r.Initiators
	}
	for i := range groups {
		if groups[i].Name == r.Group {
			return groups[i].Initiators
		}
	}
	return nil
}

// rates checks what the rule gives.
func (c *check) rates(r *Rule) {
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"reservation.iops", r.Reservation.IOPS}, {"reservation.bytes", r.Reservation.Bytes},
		{"limit.iops", r.Limit.IOPS}, {"limit.bytes", r.Limit.Bytes},
		{"burst.iops", r.Burst.IOPS}, {"burst.bytes", r.Burst.Bytes}, {"weight", r.Weight},
	} {
		if f.value < 0 {
			c.add(f.name, "found %d, expected no negative number", f.value)
		}
	}
	c.limit("iops", r.Limit.IOPS, r.Reservation.IOPS, r.Burst.IOPS, MinRate)
	c.limit("bytes", r.Limit.Bytes, r.Reservation.Bytes, r.Burst.Bytes, MinByteRate)
	if r.Weight > maxWeight {
		c.add("weight", "found %d, expected at most %d", r.Weight, maxWeight)
	}
	if r.Class >= classes {
		c.add("class", "found %d, expected urgent, high, medium or low", r.Class)
	}
}

// ValidateCost tests what NewPolicy asks of rules beside Validate: that no
// reservation of bytes comes to more tokens than the rule's limit. The error
// joins a *RuleError for everything that is wrong.
func ValidateCost(rules []Rule, cost Cost) error {
	var errs []error
	for i := range rules {
		r, c := &rules[i], check{index: i, name: ruleName(rules, i)}
		if least := r.Reservation.Bytes / cost.unit(); r.Limit.IOPS > 0 && r.Limit.IOPS < least {
			c.add("limit.iops", "found %d, expected at least the %d that the reservation of bytes comes to", r.Limit.IOPS, least)
		}
		errs = append(errs, c.errs...)
	}
	return errors.Join(errs...)
}

// maxWeight keeps one turn of a queue short.
const maxWeight = 1000

func (c *check) limit(unit string, limit, reservation, burst, least int64) {
	switch {
	case limit > 0 && limit < least:
		c.add("limit."+unit, "found %d, expected at least %d", limit, least)
	case limit > 0 && limit < reservation:
		c.add("limit."+unit, "found %d, expected at least the reservation of %d", limit, reservation)
	case limit == 0 && burst > 0:
		c.add("burst."+unit, "found %d without a limit, expected limit.%s", burst, unit)
	}
}

func anyIfEmpty(pattern string) string {
	if pattern == "" {
		return "*"
	}
	return pattern
}
