package admin

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"lunar/cmd/lunar/clustertable"
	"lunar/cmd/lunar/listing"
	"lunar/control"
	"lunar/internal/bytesize"
	"lunar/internal/cli"
	"lunar/internal/iscsiname"
)

// render prints a status as tables. per follows the heads of columns that count:
// "/s" for rates.
func render(w io.Writer, s *control.Status, per string) {
	_, line := s.Summary()
	fmt.Fprintln(w, iscsiname.Printable(line))
	fmt.Fprintf(w, "tgtd %s (%s), pid %d, up %v\n", s.Server.Version, s.Server.Build, s.Server.PID,
		(time.Duration(s.Server.UptimeSeconds) * time.Second).String())
	for _, warning := range s.Warnings {
		fmt.Fprintf(w, "warning: %s\n", iscsiname.Printable(warning))
	}
	for _, d := range s.Drift {
		fmt.Fprintf(w, "differs from the configuration file: %s: %s\n", d.Kind, iscsiname.Printable(d.What))
	}
	for _, name := range s.Closing {
		fmt.Fprintf(w, "volume %s: removed, still being closed; lunar detach gives it up\n", iscsiname.Printable(name))
	}
	for i := range s.Volumes {
		for _, t := range s.Volumes[i].Health.Troubles {
			fmt.Fprintf(w, "volume %s: %s since %s: %s\n", iscsiname.Printable(s.Volumes[i].Name), strings.ToUpper(t.State), t.Since.Format(time.DateTime), iscsiname.Printable(t.What))
		}
	}
	section(w, volumeTable, s.Volumes, per)
	if s.Cluster != nil {
		section(w, clustertable.Volumes, s.Cluster.Volumes, per)
		section(w, clustertable.Nodes, s.Cluster.Nodes, per)
	}
	if s.Cache != nil {
		renderCache(w, s.Cache, per)
	}
	if len(s.Sessions) == 0 {
		fmt.Fprintln(w, "\nNo sessions.")
	} else {
		section(w, sessionTable, sessionRows(s.Sessions), per)
	}
	section(w, threadTable, s.Server.Threads, per)
	renderRDMA(w, s, per)
}

// renderRDMA shows RDMA devices, or why there are none in use although somebody
// asked for them.
func renderRDMA(w io.Writer, s *control.Status, per string) {
	if s.RDMA == nil {
		return
	}
	if s.RDMA.Off != "" {
		fmt.Fprintf(w, "\niSER is off: %s\n", iscsiname.Printable(s.RDMA.Off))
		return
	}
	section(w, rdmaTable, s.RDMA.Devices, per)
}

var rdmaTable = listing.Table[control.RDMADevice]{
	{Name: "rdma-device", Of: func(d *control.RDMADevice) any { return d.Name }},
	{Name: "connections", Of: func(d *control.RDMADevice) any { return d.Connections }},
	{Name: "registered", Of: func(d *control.RDMADevice) any { return listing.Bytes(d.RegisteredBytes) }},
	{Name: "pdus-in", Of: func(d *control.RDMADevice) any { return d.Receives }, Counts: true},
	{Name: "pdus-out", Of: func(d *control.RDMADevice) any { return d.Sends }, Counts: true},
	{Name: "writes", Of: func(d *control.RDMADevice) any { return d.Writes }, Counts: true},
	{Name: "written", Of: func(d *control.RDMADevice) any { return listing.Bytes(d.WriteBytes) }, Counts: true},
	{Name: "reads", Of: func(d *control.RDMADevice) any { return d.Reads }, Counts: true},
	{Name: "read", Of: func(d *control.RDMADevice) any { return listing.Bytes(d.ReadBytes) }, Counts: true},
	{Name: "posts", Of: func(d *control.RDMADevice) any { return d.Posts }, Counts: true},
	{Name: "failures", Of: func(d *control.RDMADevice) any { return d.Failures }},
}

// volumeTable is the volumes with their state and traffic.
var volumeTable = listing.Table[control.Volume]{
	{Name: "volume", Of: func(v *control.Volume) any { return v.Name }},
	{Name: "type", Of: func(v *control.Volume) any { return v.Type }},
	{Name: "size", Of: func(v *control.Volume) any { return listing.Bytes(v.SizeBytes) }},
	{Name: "write", Of: func(v *control.Volume) any { return v.Write }},
	{Name: "reads", Of: func(v *control.Volume) any { return v.IO.Reads }, Counts: true},
	{Name: "read", Of: func(v *control.Volume) any { return listing.Bytes(v.IO.ReadBytes) }, Counts: true},
	{Name: "writes", Of: func(v *control.Volume) any { return v.IO.Writes }, Counts: true},
	{Name: "written", Of: func(v *control.Volume) any { return listing.Bytes(v.IO.WrittenBytes) }, Counts: true},
	{Name: "cached", Of: cached(func(c *control.VolumeCache) any { return listing.Bytes(c.ResidentBytes) })},
	{Name: "dirty", Of: cached(func(c *control.VolumeCache) any { return listing.Bytes(c.DirtyBytes) })},
	{Name: "hits", Of: cached(func(c *control.VolumeCache) any { return ratio(c.Hits, c.Misses) })},
	{Name: "state", Of: func(v *control.Volume) any { return remarks(v) }},
}

// cached is a column that volumes without cache do not have.
func cached(of func(*control.VolumeCache) any) func(*control.Volume) any {
	return func(v *control.Volume) any {
		if v.Cache == nil {
			return nil
		}
		return of(v.Cache)
	}
}

// mirrorRemark tells what a mirror does.
func mirrorRemark(m *control.Mirror) string {
	switch {
	case m.Missing != "":
		return "mirror without " + m.Missing
	case m.Behind > 0:
		return fmt.Sprintf("mirror copies %d regions", m.Behind)
	}
	return "mirror led by " + m.Leader
}

// remarks tells what is special about a volume.
func remarks(v *control.Volume) string {
	var out []string
	if v.ReadOnly {
		out = append(out, "read-only")
	}
	if c := v.Cache; c != nil {
		if f := c.Fussy; f != nil {
			out = append(out, fussyMode(f))
		}
	}
	if state := v.Health.State; state != control.HealthOK && state != "" {
		out = append(out, strings.ToUpper(state))
	}
	if m := v.Mirror; m != nil {
		out = append(out, mirrorRemark(m))
	}
	if x := v.Excess; x != nil && x.Held > 0 {
		out = append(out, bytesize.Text(x.Held)+" in excess")
	}
	if s := v.Snapshots; s != nil && s.Count > 0 {
		out = append(out, fmt.Sprintf("%s, %s shared", cli.Counted(s.Count, "snapshot"), bytesize.Text(s.SharedBytes)))
	}
	if s := v.Snapshots; s != nil && s.Failed != "" {
		out = append(out, "SNAPSHOT FAILED")
	}
	if v.Anew > 0 {
		out = append(out, "protection of "+cli.Counted(int(v.Anew), "block")+" made anew")
	}
	if out == nil {
		return "ok"
	}
	return strings.Join(out, ", ")
}

func fussyMode(f *control.Fussy) string {
	switch f.FallenBack {
	case 0:
		return "fussy"
	case f.Partitions:
		return "fussy (as lru)"
	}
	return fmt.Sprintf("fussy (%d of %d as lru)", f.FallenBack, f.Partitions)
}

func renderCache(w io.Writer, c *control.Cache, per string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\nCACHE\t%s in blocks of %s, %s used (%s)\n", bytesize.Text(c.SizeBytes), bytesize.Text(c.BlockBytes), bytesize.Text(c.UsedBytes), percent(share(c.UsedBytes, c.SizeBytes)))
	fmt.Fprintf(t, "hit ratio\t%s (%d%s hits, %d%s misses)\n", percent(c.HitRatio), c.Hits, per, c.Misses, per)
	fmt.Fprintf(t, "dirty\t%s of %s, %s%s written, %d%s write errors\n", bytesize.Text(c.DirtyBytes), bytesize.Text(c.DirtyLimitBytes), bytesize.Text(c.FlushedBytes), per, c.FlushErrors, per)
	fmt.Fprintf(t, "throttled\t%d%s writes, %d wait now\n", c.ThrottledWrites, per, c.WaitingWrites)
	fmt.Fprintf(t, "evictions\t%d%s, %d%s bypassed, %s%s read ahead\n", c.Evictions, per, c.Bypassed, per, bytesize.Text(c.ReadAheadBytes), per)
	fmt.Fprintf(t, "forwards\t%s\n", forwards(c, per))
	if c.Attach != nil {
		fmt.Fprintf(t, "re-attach\t%s\n", attachment(c.Attach))
	}
	t.Flush()
	section(w, nodeTable, c.Nodes, per)
}

var nodeTable = listing.Table[control.Node]{
	{Name: "node", Of: func(n *control.Node) any { return n.Node }},
	{Name: "partitions", Of: func(n *control.Node) any { return n.Partitions }},
	{Name: "size", Of: func(n *control.Node) any { return listing.Bytes(n.SizeBytes) }},
	{Name: "used", Of: func(n *control.Node) any { return listing.Bytes(n.UsedBytes) }},
	{Name: "dirty", Of: func(n *control.Node) any { return listing.Bytes(n.DirtyBytes) }},
	{Name: "hits", Of: func(n *control.Node) any { return ratio(n.Hits, n.Misses) }},
	{Name: "evictions", Of: func(n *control.Node) any { return n.Evictions }, Counts: true},
	{Name: "local", Of: func(n *control.Node) any { return listing.Bytes(n.LocalBytes) }, Counts: true},
	{Name: "remote", Of: func(n *control.Node) any { return listing.Bytes(n.RemoteBytes) }, Counts: true},
	{Name: "forwarded", Of: func(n *control.Node) any { return listing.Bytes(n.ForwardedBytes) }, Counts: true},
}

func forwards(c *control.Cache, per string) string {
	var requests, bytes uint64
	for i := range c.Nodes {
		requests += c.Nodes[i].Forwarded
		bytes += c.Nodes[i].ForwardedBytes
	}
	if len(c.Nodes) < 2 {
		return "none, there is one node"
	}
	text := fmt.Sprintf("%d%s requests, %s%s", requests, per, bytesize.Text(bytes), per)
	if c.ForwardThreshold == nil {
		text += ", now none of any size"
	} else {
		text += ", from " + bytesize.Text(*c.ForwardThreshold) + " on"
	}
	if c.ForwardAdaptive {
		text += " (adaptive)"
	}
	return text
}

// attachments say what an outcome means.
var attachments = map[string]string{
	"private": "private memory, nothing outlives this process",
	"fresh":   "fresh, there was nothing to take over",
	"warm":    "warm, the server before ended in order",
	"crashed": "crashed, the server before did not end in order",
}

func attachment(a *control.Attach) string {
	text := attachments[a.Outcome]
	if text == "" {
		text = iscsiname.Printable(a.Outcome)
	}
	if a.WarmBlocks > 0 || a.DirtyBytes > 0 {
		text += fmt.Sprintf("; %d blocks taken over, %s of them dirty", a.WarmBlocks, bytesize.Text(a.DirtyBytes))
	}
	if a.Dropped > 0 {
		text += fmt.Sprintf("; %d blocks dropped", a.Dropped)
	}
	if a.Replaced != "" {
		text += "; another one was replaced: " + iscsiname.Printable(a.Replaced)
	}
	for _, o := range a.Orphans {
		text += fmt.Sprintf("; %s are kept for volume %s, which is not configured any more", bytesize.Text(o.DirtyBytes), iscsiname.Printable(o.Name))
	}
	return text
}

func share(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

func percent(share float64) string { return strconv.FormatFloat(100*share, 'f', 1, 64) + "%" }

// ratio is the share of hits, if there was anything to hit.
func ratio(hits, misses uint64) any {
	if hits+misses == 0 {
		return nil
	}
	return listing.Share(control.Ratio(hits, misses))
}
