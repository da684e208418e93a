package scheduler

import (
	"cmp"
	"slices"
	"strings"
)

// rival is a rule before another that matches the same as specifically.
type rival struct {
	rule    int
	place   int // of the pattern in the later one
	pattern string
}

// claim is a pattern of a rule, with the target that it is for.
type claim struct {
	rule, place     int // place of the pattern in the rule
	pattern, target string
}

// rank is what two claims have in common that may be rivals: of others, one is more
// specific or about something else.
type rank struct {
	level           Level
	anyLUN          bool
	lun             uint64
	pattern, target int // specificity
}

// rivals finds, for each rule, the first one before it that is a rival. compared counts the
// pairs of patterns that were looked at: for patterns with different beginnings or
// ends, few, however many there are.
func rivals(rules []Rule, groups []Group) (found map[int]rival, compared int) {
	found = map[int]rival{}
	for _, claims := range claimsOf(rules, groups) {
		ends := fewestPairs(claims)
		pairs(claims, ends, func(a, b *claim) {
			compared++
			if a.rule == b.rule || !overlap(a.target, b.target) || !overlap(a.pattern, b.pattern) {
				return
			}
			if a.rule < b.rule {
				a, b = b, a
			}
			r, known := found[a.rule]
			if !known || b.rule < r.rule || b.rule == r.rule && a.place < r.place {
				found[a.rule] = rival{b.rule, a.place, a.pattern}
			}
		})
	}
	return found, compared
}

func claimsOf(rules []Rule, groups []Group) map[rank][]claim {
	members := map[string][]string{}
	for i := range groups {
		if _, twice := members[groups[i].Name]; !twice {
			members[groups[i].Name] = groups[i].Initiators
		}
	}
	all := map[rank][]claim{}
	for i := range rules {
		r := &rules[i]
		patterns, target := r.Initiators, anyIfEmpty(r.Target)
		if r.Group != "" {
			patterns = members[r.Group]
		}
		k := rank{level: r.level(), anyLUN: r.LUN == nil, target: specificity(target)}
		if r.LUN != nil {
			k.lun = *r.LUN
		}
		for place, p := range patterns {
			k.pattern = specificity(p)
			all[k] = append(all[k], claim{i, place, p, target})
		}
	}
	return all
}

// end is a literal end of a claim. Two claims overlap only if that of one begins that of
// the other.
type end func(*claim) string

var literalEnds = [...]end{
	func(c *claim) string { return head(c.pattern) },
	func(c *claim) string { return head(c.target) },
	func(c *claim) string { return head(reversed(c.pattern)) },
	func(c *claim) string { return head(reversed(c.target)) },
}

// head is what comes before the first wildcard.
func head(pattern string) string {
	if i := strings.IndexAny(pattern, "*?"); i >= 0 {
		return pattern[:i]
	}
	return pattern
}

func reversed(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}

// fewestPairs chooses the end by which the fewest pairs have to be compared.
func fewestPairs(claims []claim) (best end) {
	least := -1
	for _, e := range literalEnds {
		n := 0
		if pairs(claims, e, func(_, _ *claim) { n++ }); least < 0 || n < least {
			best, least = e, n
		}
	}
	return best
}

// pairs calls do for all claims of which one's end begins the other's. Sorted by that, what
// begins a claim's end lies before it, and each begins the next. Of equal claims the first
// stands for all.
func pairs(claims []claim, e end, do func(a, b *claim)) {
	type sorted struct {
		end string
		*claim
	}
	order := make([]sorted, len(claims))
	for i := range claims {
		order[i] = sorted{e(&claims[i]), &claims[i]}
	}
	slices.SortFunc(order, func(a, b sorted) int {
		return cmp.Or(cmp.Compare(a.end, b.end), cmp.Compare(a.pattern, b.pattern), cmp.Compare(a.target, b.target), cmp.Compare(a.rule, b.rule))
	})
	var above []sorted
	for i, c := range order {
		for len(above) > 0 && !strings.HasPrefix(c.end, above[len(above)-1].end) {
			above = above[:len(above)-1]
		}
		if n := len(above); i > 0 && n > 0 && above[n-1].pattern == c.pattern && above[n-1].target == c.target {
			do(c.claim, above[n-1].claim)
			continue
		}
		for _, o := range above {
			do(c.claim, o.claim)
		}
		above = append(above, c)
	}
}
