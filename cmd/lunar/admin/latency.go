package admin

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"lunar/cmd/lunar/listing"
	"lunar/control"
	"lunar/internal/cli"
)

type latencyCommand struct {
	asking    `embed:""`
	selection `embed:""`
}

// timedRow is how long one kind of an initiator's commands to a volume took.
type timedRow struct {
	*control.UseLatency
	*control.OperationQuantile
}

// timedRows are the slowest first.
func timedRows(l *control.Latencies) (rows []timedRow) {
	for i := range l.Uses {
		for j := range l.Uses[i].Recent {
			rows = append(rows, timedRow{&l.Uses[i], &l.Uses[i].Recent[j]})
		}
	}
	slices.SortStableFunc(rows, func(a, b timedRow) int { return cmp.Compare(b.P99, a.P99) })
	return rows
}

var latencyTable = listing.Table[timedRow]{
	{Name: "volume", Of: func(r *timedRow) any { return r.Volume }},
	{Name: "initiator", Of: func(r *timedRow) any { return r.Initiator }},
	{Name: "user", Of: func(r *timedRow) any { return r.User }, Wide: true},
	{Name: "operation", Of: func(r *timedRow) any { return r.Operation }},
	{Name: "commands", Of: func(r *timedRow) any { return r.Count }},
	{Name: "mean", Of: func(r *timedRow) any { return listing.Seconds(r.Mean) }},
	{Name: "p50", Of: func(r *timedRow) any { return listing.Seconds(r.P50) }},
	{Name: "p90", Of: func(r *timedRow) any { return listing.Seconds(r.P90) }},
	{Name: "p99", Of: func(r *timedRow) any { return listing.Seconds(r.P99) }},
	{Name: "p99.9", Of: func(r *timedRow) any { return listing.Seconds(r.P999) }},
	{Name: "max", Of: func(r *timedRow) any { return listing.Seconds(r.Max) }},
}

var latencyListed = rowsOf[control.Latencies, timedRow]{
	rows: timedRows,
	document: func(l *control.Latencies, rows []timedRow) any {
		uses := []control.UseLatency{}
		for _, r := range rows {
			u := *r.UseLatency
			u.Recent = []control.OperationQuantile{*r.OperationQuantile}
			uses = append(uses, u)
		}
		return struct {
			Interval float64              `json:"interval_seconds"`
			Uses     []control.UseLatency `json:"uses"`
		}{l.Interval, uses}
	},
	table: latencyTable,
	below: func(w io.Writer, rows []timedRow) {
		if len(rows) == 0 {
			fmt.Fprintln(w, "No command ended in the last 10 seconds that were counted.")
		}
	},
}

// Run shows how long commands took.
func (k latencyCommand) Run(ctx context.Context, c cli.Console) error {
	return k.ask(func(api *control.Client) error {
		return list(ctx, &k.selection, api, c, control.LatencyPath, latencyListed)
	})
}
