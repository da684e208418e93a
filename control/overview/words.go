package overview

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"lunar/control"
	"lunar/internal/bytesize"
)

// mostNamed is how many names a sentence has.
const mostNamed = 3

// listOf is names in a sentence.
func listOf(names []string) string {
	if more := len(names) - mostNamed; more > 0 {
		return strings.Join(names[:mostNamed], ", ") + fmt.Sprintf(" and %d more", more)
	}
	if last := len(names) - 1; last > 0 {
		return strings.Join(names[:last], ", ") + " and " + names[last]
	}
	return strings.Join(names, "")
}

// number is a whole number with a comma before every third digit.
func number[N int | int64 | float64](n N) string {
	text := strconv.FormatInt(int64(math.Round(float64(n))), 10)
	for at := len(text) - 3; at > 0 && text[at-1] != '-'; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// small is a small number with a digit behind the point, or two below 1.
func small(n float64) string {
	if n < 1 {
		return strconv.FormatFloat(n, 'f', 2, 64)
	}
	return strconv.FormatFloat(n, 'f', 1, 64)
}

func percent(share float64) string { return strconv.Itoa(int(math.Round(100*share))) + " %" }

func bytesPer(n float64) string { return bytesize.Text(int64(n)) + "/s" }

// took is a time with three digits.
func took(seconds float64) string {
	d := time.Duration(seconds * 1e9)
	for unit := time.Duration(1); unit < 1<<40; unit *= 10 {
		if d < 1000*unit {
			return d.Round(unit).String()
		}
	}
	return d.Round(time.Second).String()
}

// times is how often something was, in words.
func times(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return number(n) + " " + noun + "s"
}

// rulesIn are the rules in force, in words.
func rulesIn(q *control.QoS) []control.SeenRule {
	unit := q.Cost.UnitBytes
	out := []control.SeenRule{}
	for i := range q.Rules {
		out = append(out, control.SeenRule{Name: q.Rules[i].Name, Text: explained(&q.Rules[i], unit)})
	}
	return out
}

// explained is what a rule says, where a command of more than unit bytes counts as several.
func explained(r *control.Rule, unit int64) string {
	var parts []string
	say := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if !empty(r.Reservation) {
		say("is promised %s", rateIn(r.Reservation, unit))
	}
	if !empty(r.Limit) {
		burst := ""
		if !empty(r.Burst) {
			burst = ", and after a pause at once " + amountIn(r.Burst, unit) + " more"
		}
		say("gets at most %s%s", rateIn(r.Limit, unit), burst)
	}
	if r.Weight > 1 {
		say("has %s of what is left, where others have one", times(int(r.Weight), "part"))
	}
	switch {
	case r.Class != "" && r.Class != "medium" && r.GroupNumber:
		say("is of class %s, unless a command names another one", r.Class)
	case r.Class != "" && r.Class != "medium":
		say("is of class %s", r.Class)
	case r.GroupNumber:
		say("may name a class with each command")
	}
	if len(parts) == 0 {
		say("has one part of what others leave")
	}
	if last := len(parts) - 1; last > 0 {
		parts = []string{strings.Join(parts[:last], "; ") + "; and " + parts[last]}
	}
	return subject(r) + " " + parts[0] + "."
}

// subject is whom a rule is about.
func subject(r *control.Rule) string {
	who := "Each initiator " + listOf(r.Initiators)
	switch {
	case r.Group != "":
		who = "Group " + r.Group + " as a whole"
	case len(r.Initiators) == 1 && !strings.ContainsAny(r.Initiators[0], "*?"):
		who = "Initiator " + r.Initiators[0]
	case slices.Equal(r.Initiators, []string{"*"}):
		who = "Each initiator"
	}
	switch {
	case r.LUN != nil && r.Target != "":
		return fmt.Sprintf("%s, with LUN %d of target %s,", who, *r.LUN, r.Target)
	case r.LUN != nil:
		return fmt.Sprintf("%s, with LUN %d of each target,", who, *r.LUN)
	case r.Target != "":
		return fmt.Sprintf("%s, with each LUN of target %s,", who, r.Target)
	}
	return who
}

func empty(r control.Rate) bool { return r == control.Rate{} }

// rateIn is an amount per second in words.
func rateIn(r control.Rate, unit int64) string { return amountIn(r, unit) + " per second" }

func amountIn(r control.Rate, unit int64) string {
	commands := number(r.IOPS) + " commands"
	if unit > 0 {
		commands += " of " + bytesize.Text(unit)
	}
	switch {
	case r.Bytes == 0:
		return commands
	case r.IOPS == 0:
		return bytesize.Text(r.Bytes)
	}
	return commands + " and " + bytesize.Text(r.Bytes)
}
