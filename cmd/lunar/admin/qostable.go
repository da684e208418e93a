package admin

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"lunar/cmd/lunar/listing"
	"lunar/conf"
	"lunar/control"
	"lunar/internal/bytesize"
	"lunar/internal/cli"
	"lunar/internal/iscsiname"
)

// renderQoS prints what the token scheduler goes by.
func renderQoS(w io.Writer, q *control.QoS) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "cost\t1 token for each %s, at least 1; a write costs %d%% of that\n", bytesize.Text(q.Cost.UnitBytes), q.Cost.WritePercent)
	fmt.Fprintf(t, "window\t%d commands under way of each event thread on each device\n", q.Window)
	fmt.Fprintf(t, "rules\t%s\n", q.Lasting)
	for _, text := range []string{q.Capacity.Warning, q.Note} {
		if text != "" {
			fmt.Fprintf(t, "warning\t%s\n", iscsiname.Printable(text))
		}
	}
	t.Flush()
	if len(q.Capacity.Devices) > 0 {
		section(w, deviceTable, q.Capacity.Devices, "")
	}
	renderThreadCapacities(w, &q.Capacity)
	renderRules(w, q)
	if len(q.Groups) > 0 {
		section(w, groupTable, q.Groups, "")
	}
}

var groupTable = listing.Table[control.Group]{
	{Name: "group", Of: func(g *control.Group) any { return g.Name }},
	{Name: "initiators", Of: func(g *control.Group) any { return g.Initiators }},
}

// deviceTable is what each backing device can do, with the range of its history.
var deviceTable = listing.Table[control.Device]{
	{Name: "device", Of: func(d *control.Device) any { return d.Name }},
	{Name: "volumes", Of: func(d *control.Device) any { return d.Volumes }},
	{Name: "tokens/s", Of: func(d *control.Device) any { return known(d.Tokens) }},
	{Name: "source", Of: func(d *control.Device) any { return d.Source }},
	{Name: "lately", Of: func(d *control.Device) any {
		if len(d.History) == 0 {
			return nil
		}
		return fmt.Sprintf("%d to %d", slices.Min(d.History), slices.Max(d.History))
	}},
	{Name: "reserved-now", Of: func(d *control.Device) any { return d.Reserved }},
	{Name: "reservable", Of: func(d *control.Device) any {
		if d.Admission == 0 {
			return nil
		}
		return d.Admission
	}},
}

// known is a capacity, if there is one.
func known(tokens int64) any {
	if tokens == 0 {
		return "not known yet"
	}
	return tokens
}

// renderThreadCapacities prints what each event thread can do, and what is full.
func renderThreadCapacities(w io.Writer, c *control.Capacity) {
	if len(c.Threads) == 0 {
		return
	}
	section(w, threadCapacityTable, c.Threads, "")
	full := "no device and no event thread: initiators, the network or limits"
	if len(c.Bottleneck) > 0 {
		full = strings.Join(c.Bottleneck, ", ")
	}
	fmt.Fprintf(w, "\nBottleneck now: %s\n", iscsiname.Printable(full))
}

var threadCapacityTable = listing.Table[control.ThreadCapacity]{
	{Name: "event-thread", Of: func(t *control.ThreadCapacity) any { return t.Name }},
	{Name: "tokens/s", Of: func(t *control.ThreadCapacity) any { return known(t.Tokens) }},
	{Name: "served-now", Of: func(t *control.ThreadCapacity) any { return t.Served }},
	{Name: "busy", Of: func(t *control.ThreadCapacity) any { return fmt.Sprintf("%d%%", t.Load) }},
}

func renderRules(w io.Writer, q *control.QoS) {
	rows := ruleRows(q)
	if rows == nil {
		fmt.Fprintln(w, "\nNo rules: every command passes at once.")
		return
	}
	section(w, ruleTable, rows, "")
}

// ruleRow is a rule in force, or one of the file that is not, and how it stands to the file.
type ruleRow struct {
	*control.Rule
	file string
}

func ruleRows(q *control.QoS) (rows []ruleRow) {
	for i := range q.Rules {
		rows = append(rows, ruleRow{&q.Rules[i], origin(&q.Rules[i], &q.Configured)})
	}
	for i := range q.Configured.Rules {
		if r := &q.Configured.Rules[i]; find(q.Rules, r.Name) == nil {
			rows = append(rows, ruleRow{r, "NOT IN FORCE"})
		}
	}
	return rows
}

func find(rules []control.Rule, name string) *control.Rule {
	if i := slices.IndexFunc(rules, func(r control.Rule) bool { return r.Name == name }); i >= 0 {
		return &rules[i]
	}
	return nil
}

// origin tells how a rule in force stands to the configuration file.
func origin(r *control.Rule, file *control.RuleSet) string {
	switch configured := find(file.Rules, r.Name); {
	case configured == nil:
		return "not there"
	case reflect.DeepEqual(configured, r):
		return "the same"
	}
	return "differs"
}

var ruleTable = listing.Table[ruleRow]{
	{Name: "rule", Of: func(r *ruleRow) any { return r.Name }},
	{Name: "initiators", Of: func(r *ruleRow) any {
		if r.Group != "" {
			return "group " + r.Group
		}
		return r.Initiators
	}},
	{Name: "target", Of: func(r *ruleRow) any {
		if r.Target == "" {
			return conf.Everything
		}
		return r.Target
	}},
	{Name: "lun", Of: func(r *ruleRow) any {
		if r.LUN == nil {
			return conf.Everything
		}
		return *r.LUN
	}},
	{Name: "reservation", Of: func(r *ruleRow) any { return rateText(r.Reservation, "/s") }},
	{Name: "limit", Of: func(r *ruleRow) any { return rateText(r.Limit, "/s") }},
	{Name: "burst", Of: func(r *ruleRow) any { return rateText(r.Burst, "") }},
	{Name: "weight", Of: func(r *ruleRow) any { return r.Weight }},
	{Name: "class", Of: func(r *ruleRow) any { return r.Class }},
	{Name: "file", Of: func(r *ruleRow) any { return r.file }},
}

// rateText is a rate as qos set takes it.
func rateText(r control.Rate, per string) string {
	var parts []string
	if r.IOPS > 0 {
		parts = append(parts, strconv.FormatInt(r.IOPS, 10))
	}
	if r.Bytes > 0 {
		parts = append(parts, conf.Size(r.Bytes).String()+per)
	}
	if parts == nil {
		return "-"
	}
	return strings.Join(parts, ", ")
}

// renderExplanation prints what the token scheduler does for an initiator.
func renderExplanation(w io.Writer, initiator string, x *control.Explanation) {
	switch {
	case len(x.Flows) == 0:
		fmt.Fprintf(w, "%s has no session, and no target that it may use.\n", iscsiname.Printable(initiator))
		return
	case !x.Flows[0].Open:
		fmt.Fprintf(w, "%s has no session. These rules would apply to it:\n", iscsiname.Printable(initiator))
	default:
		fmt.Fprintln(w, iscsiname.Printable(initiator))
		renderTraffic(w, x)
	}
	if x.Lapsed != "" {
		fmt.Fprintf(w, "\n%s\n", x.Lapsed)
	}
	renderEffects(w, x)
	if x.Flows[0].Open {
		renderLatencies(w, x)
		renderPromises(w, x)
		renderConnections(w, x)
		renderThreadCapacities(w, &x.Capacity)
	}
}

func place(f *control.Flow) string { return fmt.Sprintf("%s %d", f.Target, f.LUN) }

func renderTraffic(w io.Writer, x *control.Explanation) {
	var rows []string
	for i := range x.Flows {
		f := &x.Flows[i]
		rows = append(rows, cli.Row(place(f), f.Offered, f.Served, bytesize.Text(f.ServedBytes), f.Reserved, f.Normal, f.Opportunistic, f.Hits, f.Cancelled, f.Named, f.Waiting))
	}
	cli.Table(w, cli.Row("TARGET, LUN", "OFFERED", "SERVED", "BYTES", "BY RESERVATION", "NORMAL", "OPPORTUNISTIC", "CACHE HITS", "CANCELLED", "OTHER CLASS", "WAIT NOW"), rows)
}

func renderEffects(w io.Writer, x *control.Explanation) {
	var rows []string
	for i := range x.Flows {
		f := &x.Flows[i]
		for _, e := range f.Rules {
			rows = append(rows, cli.Row(place(f), e.Rule, e.Level, rateText(e.Reservation, "/s"), rateText(e.Limit, "/s"), heldText(e.HeldIOPS, e.Limit.IOPS), heldText(e.HeldBandwidth, e.Limit.Bytes), e.Tokens))
		}
		if len(f.Rules) == 0 {
			rows = append(rows, cli.Row(place(f), "(none)", "-", "-", "-", "-", "-", "-"))
		}
	}
	cli.Table(w, cli.Row("TARGET, LUN", "RULE", "LEVEL", "RESERVATION", "LIMIT", "HELD BY IOPS", "HELD BY BANDWIDTH", "TOKENS LEFT"), rows)
}

// heldText is for how long a limit held commands back, if there is one.
func heldText(seconds float64, limit int64) string {
	if limit == 0 {
		return "-"
	}
	return durationText(seconds)
}

// durationText writes a time with three digits.
func durationText(seconds float64) string { return listing.Seconds(seconds).String() }

func renderLatencies(w io.Writer, x *control.Explanation) {
	var rows []string
	for i := range x.Flows {
		f := &x.Flows[i]
		for _, part := range []struct {
			name string
			l    *control.Latency
		}{{"queue", &f.Queue}, {"service", &f.Service}} {
			mean := 0.0
			if part.l.Count > 0 {
				mean = part.l.Sum / float64(part.l.Count)
			}
			rows = append(rows, cli.Row(place(f), part.name, part.l.Count, durationText(mean), durationText(part.l.P50), durationText(part.l.P90), durationText(part.l.P99), durationText(part.l.P999), durationText(part.l.Max)))
		}
	}
	cli.Table(w, cli.Row("TARGET, LUN", "TIME", "COMMANDS", "MEAN", "50 %", "90 %", "99 %", "99.9 %", "MAX"), rows)
}

// shownPeriods is how many of the last periods are printed.
const shownPeriods = 10

func renderPromises(w io.Writer, x *control.Explanation) {
	var rows []string
	for i := range x.Promises {
		p := &x.Promises[i]
		last := []string{}
		for _, period := range p.Periods[max(0, len(p.Periods)-shownPeriods):] {
			text := strconv.FormatInt(period.Served, 10)
			if !period.Met {
				text += "!"
			}
			last = append(last, text)
		}
		rows = append(rows, cli.Row(p.Rule, p.Level+" "+p.Name, p.Reservation, p.Met, p.Missed, p.Unused, strings.Join(last, " ")))
	}
	if rows != nil {
		cli.Table(w, cli.Row("RULE", "PROMISED TO", "TOKENS/S", "KEPT", "MISSED", "NOT USED FOR", "SERVED IN THE LAST SECONDS (! is missed)"), rows)
	}
}
