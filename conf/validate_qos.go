package conf

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"lunar/scheduler"
)

// validateQoS applies the rules that join keys of the section, or it with the
// rest of the configuration.
func (d *decoder) validateQoS(c *Config, volumes *names) {
	q := &c.QoS
	if q.Capacity > 0 && q.Profile > 0 {
		d.fail("qos.profile", q.Profile.String(), "capacity: auto as well; a capacity that is given is not measured")
	}
	if q.Pool == scheduler.HardPool && q.Capacity == 0 && q.Profile == 0 && len(q.Capacities) < max(1, len(c.Volumes)) {
		d.fail("qos.pool", `"hard" with a capacity that has to be learnt`, "qos.capacity, qos.profile or qos.capacities for all volumes: nobody can show what a device does while it idles when the pool is spent")
	}
	for _, name := range slices.Sorted(maps.Keys(q.Capacities)) {
		if !volumes.use(name) {
			d.failAt(d.at["qos.capacities."+name], "qos.capacities", "a key that is no volume's name", volumes.expected(d, name))
		}
	}
	for i := range q.Rules {
		d.warnUseless(rulePath(i), &q.Rules[i], c)
	}
	d.validateRules(q)
}

// validateRules applies the scheduler's rules.
func (d *decoder) validateRules(q *QoS) {
	groups := namesOf("qos.groups", q.Groups, func(g *scheduler.Group) string { return g.Name })
	broken := d.brokenRules(len(q.Rules))
	for i := range q.Rules {
		groups.check(d, rulePath(i)+".group", q.Rules[i].Group)
	}
	groups.warnUnused(d)
	told := map[string]bool{}
	for _, p := range d.problems {
		told[p.Key] = true
	}
	for _, err := range ruleErrors(errors.Join(scheduler.Validate(q.Rules, q.Groups), scheduler.ValidateCost(q.Rules, q.Cost))) {
		if !broken[err.Index] {
			d.failRule(err, told)
		}
	}
}

// brokenRules are the rules with keys that could not be read, of which nothing
// more can be said.
func (d *decoder) brokenRules(n int) []bool {
	broken := make([]bool, n)
	for _, p := range d.problems {
		rest, ofRule := strings.CutPrefix(p.Key, "qos.rules[")
		number, _, _ := strings.Cut(rest, "]")
		if i, err := strconv.Atoi(number); ofRule && err == nil && i < n {
			broken[i] = true
		}
	}
	return broken
}

// ruleErrors takes joined errors apart.
func ruleErrors(err error) (all []*scheduler.RuleError) {
	var one *scheduler.RuleError
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range many.Unwrap() {
			all = append(all, ruleErrors(e)...)
		}
	} else if errors.As(err, &one) {
		all = append(all, one)
	}
	return all
}

// failRule shows what the scheduler says of a rule at the rule's place and in
// the file's words, unless something has been told of the key. An unknown group has
// been reported before.
func (d *decoder) failRule(e *scheduler.RuleError, told map[string]bool) {
	field, reason := e.Field, e.Reason
	if inBytes, ok := strings.CutSuffix(field, ".bytes"); ok {
		field, reason = inBytes+".bandwidth", asSizes(strings.ReplaceAll(reason, ".bytes", ".bandwidth"))
	}
	path := rulePath(e.Index) + "." + field
	if told[path] {
		return
	}
	told[path] = true
	found, expected, _ := strings.Cut(strings.TrimPrefix(reason, "found "), ", expected ")
	d.fail(path, quotedParts.ReplaceAllStringFunc(found, requote), expected)
}

// quotedParts are the texts of a file in what the scheduler says.
var quotedParts = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

func requote(quoted string) string {
	text, err := strconv.Unquote(quoted)
	if err != nil {
		return notShown(quoted)
	}
	return quote(text)
}

var digits = regexp.MustCompile(`[0-9]+`)

// asSizes writes the numbers of a text about bytes as sizes.
func asSizes(text string) string {
	return digits.ReplaceAllStringFunc(text, func(number string) string {
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return number
		}
		return Size(n).String()
	})
}

// warnUseless tells of a rule that no logical unit of the file is for.
func (d *decoder) warnUseless(path string, r *scheduler.Rule, c *Config) {
	matches := func(t Target) bool { return r.Target == "" || scheduler.Matches(r.Target, t.Name) }
	targets := slices.DeleteFunc(slices.Clone(c.Targets), func(t Target) bool { return !matches(t) })
	if r.Target != "" && len(targets) == 0 {
		d.warn(path+".target", quote(r.Target), "a target of this file; the rule has no effect")
		return
	}
	has := func(t Target) bool {
		return slices.ContainsFunc(t.Access, func(a Access) bool {
			return slices.ContainsFunc(a.LUNs, func(l LUN) bool { return uint64(l.LUN) == *r.LUN })
		})
	}
	if r.LUN != nil && !slices.ContainsFunc(targets, has) {
		d.warn(path+".lun", fmt.Sprint(*r.LUN), "a LUN that one of the targets has; the rule has no effect")
	}
}
