package scheduler

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"lunar/scheduler/haechi"
)

func TestValidate(t *testing.T) {
	one, a := uint64(1), []string{"iqn.a"}
	groups := []Group{{"db", []string{"iqn.db*"}}}
	for name, c := range map[string]struct {
		rules  []Rule
		errors []string // rule and field
	}{
		"good":               {[]Rule{{Initiators: a, Reservation: Rate{IOPS: 5}, Limit: Rate{IOPS: 5}}, {Group: "db", Limit: Rate{Bytes: 4096}}}, nil},
		"nobody":             {[]Rule{{Name: "x"}}, []string{"x: initiators"}},
		"both":               {[]Rule{{Initiators: a, Group: "db"}}, []string{"#1: group"}},
		"unknown group":      {[]Rule{{Group: "web"}}, []string{"#1: group"}},
		"empty pattern":      {[]Rule{{Initiators: []string{""}}}, []string{"#1: initiators"}},
		"negative":           {[]Rule{{Initiators: a, Reservation: Rate{IOPS: -1}, Burst: Rate{Bytes: -1}, Weight: -1}}, []string{"#1: reservation.iops", "#1: burst.bytes", "#1: weight"}},
		"limit too low":      {[]Rule{{Initiators: a, Reservation: Rate{IOPS: 10}, Limit: Rate{IOPS: 9}}}, []string{"#1: limit.iops"}},
		"bytes too low":      {[]Rule{{Initiators: a, Limit: Rate{Bytes: 4095}}}, []string{"#1: limit.bytes"}},
		"burst of nothing":   {[]Rule{{Initiators: a, Burst: Rate{IOPS: 9}}}, []string{"#1: burst.iops"}},
		"weight":             {[]Rule{{Initiators: a, Weight: 1001}}, []string{"#1: weight"}},
		"class":              {[]Rule{{Initiators: a, Class: 4}}, []string{"#1: class"}},
		"name twice":         {[]Rule{{Name: "x", Initiators: a}, {Name: "x", Initiators: []string{"iqn.b"}}}, []string{"x: name"}},
		"same twice":         {[]Rule{{Initiators: a}, {Initiators: a}}, []string{"#2: initiators"}},
		"overlap":            {[]Rule{{Initiators: []string{"iqn.a*"}}, {Initiators: []string{"*iqn.a"}}}, []string{"#2: initiators"}},
		"one more specific":  {[]Rule{{Initiators: []string{"iqn.*"}}, {Initiators: []string{"iqn.a*"}}, {Initiators: a}}, nil},
		"disjoint":           {[]Rule{{Initiators: []string{"iqn.a*"}}, {Initiators: []string{"iqn.b*"}}}, nil},
		"levels do not meet": {[]Rule{{Initiators: a}, {Initiators: a, LUN: &one}, {Initiators: a, Target: "iqn.t"}, {Group: "db"}}, nil},
		"same unit":          {[]Rule{{Initiators: a, LUN: &one}, {Initiators: a, LUN: &one}}, []string{"#2: initiators"}},
	} {
		if found := ruleErrors(Validate(c.rules, groups)); !slices.Equal(found, c.errors) {
			t.Errorf("%s: found %v, expected %v", name, found, c.errors)
		}
	}
}

// TestValidateCost: a limit of commands may be below the tokens that a
// reservation of bytes comes to, which depend on the cost.
func TestValidateCost(t *testing.T) {
	r := []Rule{{Initiators: []string{"a"}}, {Initiators: []string{"b"}, Reservation: Rate{Bytes: 8192}, Limit: Rate{IOPS: 1}}}
	_, err := NewPolicy(r, nil, Cost{})
	if found := ruleErrors(err); !slices.Equal(found, []string{"#2: limit.iops"}) {
		t.Errorf("found %v, expected limit.iops of rule 2", found)
	}
	var e *RuleError
	if errors.As(err, &e); e.Index != 1 {
		t.Errorf("found index %d, expected 1", e.Index)
	}
	if _, err := NewPolicy(r, nil, Cost{Unit: 8192}); err != nil {
		t.Error(err)
	}
}

// ruleErrors are the rules and fields of joined errors.
func ruleErrors(err error) (found []string) {
	if err == nil {
		return nil
	}
	for e := range strings.Lines(err.Error()) {
		words := strings.Split(strings.TrimPrefix(e, "qos rule "), ": ")
		found = append(found, words[0]+": "+words[1])
	}
	return found
}

func TestResolve(t *testing.T) {
	one := uint64(1)
	p, err := NewPolicy([]Rule{
		{Name: "all", Initiators: []string{"*"}},
		{Name: "a", Initiators: []string{"iqn.a*"}},
		{Name: "unit", Initiators: []string{"iqn.a*"}, LUN: &one},
		{Name: "target", Initiators: []string{"iqn.a*"}, Target: "iqn.t*"},
		{Name: "group", Group: "g"},
	}, []Group{{"g", []string{"iqn.?1"}}}, Cost{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		flow  Flow
		rules [levels]string
	}{
		{Flow{Initiator: "iqn.a1", Target: "iqn.t", LUN: 0}, [levels]string{"group", "a", "target"}},
		{Flow{Initiator: "iqn.a1", Target: "iqn.t", LUN: 1}, [levels]string{"group", "a", "target"}},
		{Flow{Initiator: "iqn.a1", Target: "iqn.u", LUN: 1}, [levels]string{"group", "a", "unit"}},
		{Flow{Initiator: "iqn.a2", Target: "iqn.u", LUN: 0}, [levels]string{"", "a", ""}},
		{Flow{Initiator: "eui.1", Target: "iqn.u", LUN: 0}, [levels]string{"", "all", ""}},
	} {
		for i, e := range p.Resolve(c.flow) {
			if found := e.Rule; found == nil && c.rules[i] != "" || found != nil && found.Name != c.rules[i] {
				t.Errorf("%v, %v: found %v, expected %q", c.flow, Level(i), found, c.rules[i])
			}
		}
	}
}

// TestPolicyAdmit: reservations add up over the hierarchy without counting
// twice, and the error has the arithmetic.
func TestPolicyAdmit(t *testing.T) {
	p, err := NewPolicy([]Rule{
		{Name: "db", Group: "g", Reservation: Rate{IOPS: 500}},
		{Name: "each", Initiators: []string{"iqn.db*"}, Reservation: Rate{IOPS: 200}},
		{Name: "web", Initiators: []string{"iqn.web"}, Reservation: Rate{Bytes: 4096 * 300}},
	}, []Group{{"g", []string{"iqn.db*"}}}, Cost{})
	if err != nil {
		t.Fatal(err)
	}
	on := func(device, initiator string, lun uint64) Placed {
		return Placed{Flow{Initiator: initiator, Target: "t", LUN: lun}, device}
	}
	flows := []Placed{on("x", "iqn.db1", 0), on("x", "iqn.db1", 1), on("x", "iqn.db2", 0), on("x", "iqn.web", 0), on("x", "iqn.other", 0)}
	for _, c := range []struct {
		flows           []Placed
		capacity, asked int64
	}{{flows, 800, 0}, {flows, 799, 800}, {append(flows, on("x", "iqn.db3", 0)), 899, 900}, {flows, 0, 0}} {
		err := p.Admit(c.flows, map[string]int64{"x": c.capacity})
		var refused *haechi.AdmissionError
		if errors.As(err, &refused) != (c.asked != 0) || refused != nil && refused.Asked != c.asked {
			t.Errorf("capacity %d: found %v, expected %d asked", c.capacity, err, c.asked)
		}
	}
	err = p.Admit(flows, map[string]int64{"x": 799})
	if want := "reservations add up to 800 tokens per period, 1 more than the capacity of 799 of device x"; err == nil || err.Error() != want {
		t.Errorf("found %q, expected %q", err, want)
	}
}

// TestPolicyAdmitByDevice: what can be served by several devices counts where
// there is room, and the error names those that it cannot leave.
func TestPolicyAdmitByDevice(t *testing.T) {
	first := uint64(0)
	p, err := NewPolicy([]Rule{
		{Name: "db", Initiators: []string{"iqn.db"}, Reservation: Rate{IOPS: 500}},
		{Name: "db-first", Initiators: []string{"iqn.db"}, LUN: &first, Reservation: Rate{IOPS: 300}},
		{Name: "web", Initiators: []string{"iqn.web"}, Reservation: Rate{IOPS: 400}},
	}, nil, Cost{})
	if err != nil {
		t.Fatal(err)
	}
	flows := []Placed{{Flow{Initiator: "iqn.db", Target: "t", LUN: 0}, "x"}, {Flow{Initiator: "iqn.db", Target: "t", LUN: 1}, "y"}, {Flow{Initiator: "iqn.web", Target: "t", LUN: 1}, "y"}, {Flow{Initiator: "iqn.web", Target: "t", LUN: 2}, "z"}}
	for _, c := range []struct {
		x, y, z int64
		want    string
	}{
		{500, 400, 100, ""},
		{300, 200, 400, ""},
		{300, 300, 300, ""},
		{299, 9000, 9000, "reservations add up to 300 tokens per period, 1 more than the capacity of 299 of device x"},
		{300, 300, 299, "reservations add up to 900 tokens per period, 1 more than the capacity of 899 of devices x, y, z together"},
		{9000, 100, 299, "reservations add up to 400 tokens per period, 1 more than the capacity of 399 of devices y, z together"},
		{300, 0, 1, ""},
	} {
		err := p.Admit(flows, map[string]int64{"x": c.x, "y": c.y, "z": c.z})
		if found := fmt.Sprint(err); found != c.want && (err != nil || c.want != "") {
			t.Errorf("%+v: found %q", c, found)
		}
	}
}

func TestCost(t *testing.T) {
	for _, c := range []struct {
		cost  Cost
		bytes int64
		write bool
		want  int64
	}{{Cost{}, 0, false, 1}, {Cost{}, 512, true, 1}, {Cost{}, 4096, false, 1}, {Cost{}, 65536, false, 16}, {Cost{Unit: 8192}, 65536, false, 8}, {Cost{WritePercent: 250}, 8192, true, 5}, {Cost{WritePercent: 250}, 8192, false, 2}} {
		if got := c.cost.Of(c.bytes, c.write); got != c.want {
			t.Errorf("%+v of %d: found %d, expected %d", c.cost, c.bytes, got, c.want)
		}
	}
}

// TestGlob: patterns match as the standard library's, which has no '/' here.
func TestGlob(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern, name := rapid.StringMatching(`[ab*?]{0,6}`).Draw(t, "pattern"), rapid.StringMatching(`[ab]{0,6}`).Draw(t, "name")
		if want, err := path.Match(pattern, name); err != nil || matches(pattern, name) != want {
			t.Fatalf("found %v, expected %v", !want, want)
		}
	})
}

// TestOverlap: two patterns overlap when one of the short names matches both;
// patterns of up to three bytes need no longer witness than four.
func TestOverlap(t *testing.T) {
	names := []string{""}
	for from := 0; len(names[len(names)-1]) < 6; from++ {
		names = append(names, names[from]+"a", names[from]+"b")
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.StringMatching(`[ab*?]{0,3}`).Draw(t, "a"), rapid.StringMatching(`[ab*?]{0,3}`).Draw(t, "b")
		want := slices.ContainsFunc(names, func(n string) bool { return matches(a, n) && matches(b, n) })
		if overlap(a, b) != want {
			t.Fatalf("found %v, expected %v", !want, want)
		}
	})
}
