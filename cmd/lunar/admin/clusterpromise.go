package admin

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"lunar/cmd/lunar/listing"
	"lunar/control"
	"lunar/internal/iscsiname"
)

// renderClusterPromises prints what is promised over all nodes.
func renderClusterPromises(w io.Writer, p *control.ClusterPromises) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "controller\tnode %s, elected as number %d\n", p.Controller, p.Term)
	fmt.Fprintf(t, "nodes\t%s\n", strings.Join(p.Nodes, ", "))
	if len(p.Silent) > 0 {
		fmt.Fprintf(t, "silent\t%s: each is taken to have its even part of all limits\n", strings.Join(p.Silent, ", "))
	}
	if p.More > 0 {
		fmt.Fprintf(t, "more\t%d promises are not shown\n", p.More)
	}
	t.Flush()
	if len(p.Devices) > 0 {
		section(w, sharedDeviceTable, p.Devices, "")
	}
	if len(p.Promises) > 0 {
		section(w, clusterPromiseTable, p.Promises, "")
	}
	for i := range p.Promises {
		if o := &p.Promises[i]; o.Why != "" {
			fmt.Fprintf(w, "\n%s %s was missed in the last second: %s\n", o.Level, iscsiname.Printable(o.Name), iscsiname.Printable(o.Why))
		}
	}
}

// sharedDeviceTable is what all nodes together can do with a device.
var sharedDeviceTable = listing.Table[control.Device]{
	{Name: "device", Of: func(d *control.Device) any { return d.Name }},
	{Name: "tokens/s", Of: func(d *control.Device) any { return known(d.Tokens) }},
	{Name: "reserved-now", Of: func(d *control.Device) any { return d.Reserved }},
}

var clusterPromiseTable = listing.Table[control.ClusterPromise]{
	{Name: "promised-to", Of: func(p *control.ClusterPromise) any { return p.Level + " " + p.Name }},
	{Name: "reservation", Of: func(p *control.ClusterPromise) any { return orNothing(p.Reservation) }},
	{Name: "limit", Of: func(p *control.ClusterPromise) any { return orNothing(p.Limit) }},
	{Name: "received", Of: func(p *control.ClusterPromise) any { return p.Served }},
	{Name: "kept", Of: func(p *control.ClusterPromise) any { return p.Met }},
	{Name: "missed", Of: func(p *control.ClusterPromise) any { return p.Missed }},
	{Name: "quota-of-nodes", Of: func(p *control.ClusterPromise) any {
		parts := []string{}
		for _, q := range p.Nodes {
			parts = append(parts, fmt.Sprintf("%s %d of reservation, %.0f%% of limit, received %d", q.Node, q.Reserved, 100*q.Limit, q.Served))
		}
		return parts
	}},
}

// orNothing is a rate, if there is one.
func orNothing(tokens int64) any {
	if tokens == 0 {
		return nil
	}
	return tokens
}
