package scheduler

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestRivals: what is found by sorting is what comparing all would find.
func TestRivals(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		b := make([]byte, 1+random.IntN(3))
		for i := range b {
			b[i] = "ab*?"[random.IntN(4)]
		}
		return string(b)
	}
	found := 0
	for range 3000 {
		var rules []Rule
		for range 1 + random.IntN(6) {
			r := Rule{Initiators: []string{text()}}
			for random.IntN(3) == 0 {
				r.Initiators = append(r.Initiators, text())
			}
			if random.IntN(2) == 0 {
				r.Target = text()
			}
			if random.IntN(4) == 0 {
				lun := random.Uint64N(2)
				r.LUN = &lun
			}
			rules = append(rules, r)
		}
		got, _ := rivals(rules, nil)
		for i := range rules {
			_, is := got[i]
			found++
			if want := hasRival(rules, i); is != want {
				t.Fatalf("rule %d of %+v: found %v, expected a rival: %t", i, rules, got[i], want)
			}
		}
	}
	if found == 0 {
		t.Error("nothing was compared")
	}
}

// hasRival compares a rule with all before it.
func hasRival(rules []Rule, i int) bool {
	a := &rules[i]
	for j := range i {
		b := &rules[j]
		if a.level() != b.level() || (a.LUN == nil) != (b.LUN == nil) || a.LUN != nil && *a.LUN != *b.LUN {
			continue
		}
		x, y := anyIfEmpty(a.Target), anyIfEmpty(b.Target)
		if specificity(x) != specificity(y) || !overlap(x, y) {
			continue
		}
		for _, p := range a.Initiators {
			for _, q := range b.Initiators {
				if specificity(p) == specificity(q) && overlap(p, q) {
					return true
				}
			}
		}
	}
	return false
}

// TestRivalsGrowth: twice as many rules are no more than a little over twice the work.
func TestRivalsGrowth(t *testing.T) {
	for name, rule := range map[string]func(i int) Rule{
		"names":      func(i int) Rule { return Rule{Initiators: []string{fmt.Sprintf("iqn.2026-11.test:h%07d", i)}} },
		"beginnings": func(i int) Rule { return Rule{Initiators: []string{fmt.Sprintf("iqn.2026-11.test:h%07d*", i)}} },
		"ends":       func(i int) Rule { return Rule{Initiators: []string{fmt.Sprintf("*h%07d", i)}} },
		"targets": func(i int) Rule {
			return Rule{Initiators: []string{"*"}, Target: fmt.Sprintf("iqn.2026-11.test:t%07d*", i)}
		},
		"ends of targets": func(i int) Rule { return Rule{Initiators: []string{"*"}, Target: fmt.Sprintf("*t%07d", i)} },
		"all the same":    func(int) Rule { return Rule{Initiators: []string{"*"}} },
	} {
		work := func(n int) int {
			var rules []Rule
			for i := range n {
				rules = append(rules, rule(i))
			}
			_, compared := rivals(rules, nil)
			return compared
		}
		if one, two := work(2000), work(4000); two > 2*one+one/10+10 {
			t.Errorf("%s: %d comparisons for 2000 rules, %d for 4000", name, one, two)
		}
	}
}
