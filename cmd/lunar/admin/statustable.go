package admin

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"lunar/control"
	"lunar/internal/bytesize"
	"lunar/internal/cli"
	"lunar/internal/iscsiname"
)

// render prints a status as tables. per follows the heads of columns that count:
// "/s" for rates.
func render(w io.Writer, s *control.Status, per string) {
	fmt.Fprintf(w, "tgtd %s (%s), pid %d, up %v\n", s.Server.Version, s.Server.Build, s.Server.PID,
		(time.Duration(s.Server.UptimeSeconds) * time.Second).String())
	for _, warning := range s.Warnings {
		fmt.Fprintf(w, "warning: %s\n", iscsiname.Printable(warning))
	}
	for _, d := range s.Drift {
		fmt.Fprintf(w, "differs from the configuration file: %s: %s\n", d.Kind, iscsiname.Printable(d.What))
	}
	for i := range s.Volumes {
		for _, t := range s.Volumes[i].Health.Troubles {
			fmt.Fprintf(w, "volume %s: %s since %s: %s\n", iscsiname.Printable(s.Volumes[i].Name), strings.ToUpper(t.State), t.Since.Format(time.DateTime), iscsiname.Printable(t.What))
		}
	}
	renderVolumes(w, s, per)
	if s.Cache != nil {
		renderCache(w, s.Cache, per)
	}
	renderSessions(w, s, per)
	renderThreads(w, s, per)
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
	var rows []string
	for i := range s.RDMA.Devices {
		d := &s.RDMA.Devices[i]
		rows = append(rows, cli.Row(d.Name, d.Connections, bytesize.Text(d.RegisteredBytes), d.Receives, d.Sends, d.Writes, bytesize.Text(d.WriteBytes), d.Reads, bytesize.Text(d.ReadBytes),
			d.Posts, d.Failures))
	}
	cli.Table(w, cli.Row("RDMA DEVICE", "CONNECTIONS", "REGISTERED", "PDUS IN"+per, "PDUS OUT"+per, "WRITES"+per, "WRITTEN"+per, "READS"+per, "READ"+per, "POSTS"+per, "FAILURES"), rows)
}

func renderVolumes(w io.Writer, s *control.Status, per string) {
	var rows []string
	for i := range s.Volumes {
		v := &s.Volumes[i]
		cached, dirty, hits := "-", "-", "-"
		if c := v.Cache; c != nil {
			cached, dirty, hits = bytesize.Text(c.ResidentBytes), bytesize.Text(c.DirtyBytes), ratio(c.Hits, c.Misses)
		}
		rows = append(rows, cli.Row(v.Name, v.Type, bytesize.Text(v.SizeBytes), v.Write, v.IO.Reads, bytesize.Text(v.IO.ReadBytes), v.IO.Writes, bytesize.Text(v.IO.WrittenBytes),
			cached, dirty, hits, remarks(v)))
	}
	cli.Table(w, cli.Row("VOLUME", "TYPE", "SIZE", "WRITE", "READS"+per, "READ"+per, "WRITES"+per, "WRITTEN"+per, "CACHED", "DIRTY", "HITS", "STATE"), rows)
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
	var rows []string
	for i := range c.Nodes {
		n := &c.Nodes[i]
		rows = append(rows, cli.Row(n.Node, n.Partitions, bytesize.Text(n.SizeBytes), bytesize.Text(n.UsedBytes), bytesize.Text(n.DirtyBytes), ratio(n.Hits, n.Misses),
			n.Evictions, bytesize.Text(n.LocalBytes), bytesize.Text(n.RemoteBytes), bytesize.Text(n.ForwardedBytes)))
	}
	cli.Table(w, cli.Row("NODE", "PARTITIONS", "SIZE", "USED", "DIRTY", "HITS", "EVICTIONS"+per, "LOCAL"+per, "REMOTE"+per, "FORWARDED"+per), rows)
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

func renderSessions(w io.Writer, s *control.Status, per string) {
	var rows []string
	for i := range s.Sessions {
		n := &s.Sessions[i]
		if n.Target == "" {
			rows = append(rows, cli.Row(n.TSIH, n.Initiator, n.Address, n.Transport, "(discovery)", "-", n.Thread, inFlight(n), "-", "-", "-", "-"))
		}
		for j := range n.LUNs {
			l := &n.LUNs[j]
			rows = append(rows, cli.Row(n.TSIH, n.Initiator, n.Address, n.Transport, n.Target, fmt.Sprintf("%d %s", l.LUN, l.Volume), n.Thread, inFlight(n),
				l.IO.Reads, bytesize.Text(l.IO.ReadBytes), l.IO.Writes, bytesize.Text(l.IO.WrittenBytes)))
		}
	}
	if rows == nil {
		fmt.Fprintln(w, "\nNo sessions.")
		return
	}
	cli.Table(w, cli.Row("SESSION", "INITIATOR", "ADDRESS", "BY", "TARGET", "LUN", "THREAD", "IN FLIGHT", "READS"+per, "READ"+per, "WRITES"+per, "WRITTEN"+per), rows)
}

// renderConnections lists the connections of all sessions.
func renderConnections(w io.Writer, s *control.Status) {
	var rows []string
	for i := range s.Sessions {
		n := &s.Sessions[i]
		for j := range n.Connections {
			c := &n.Connections[j]
			rows = append(rows, cli.Row(n.TSIH, c.CID, c.Address, c.Portal, c.Transport, c.Thread, c.State, bytesize.Text(c.ReadBytes), bytesize.Text(c.WrittenBytes)))
		}
	}
	if rows != nil {
		cli.Table(w, cli.Row("SESSION", "CONNECTION", "ADDRESS", "PORTAL", "BY", "THREAD", "STATE", "READ", "WRITTEN"), rows)
	}
}

func inFlight(n *control.Session) string { return fmt.Sprintf("%d/%d", n.InFlight, n.Window) }

func renderThreads(w io.Writer, s *control.Status, per string) {
	var rows []string
	for i := range s.Server.Threads {
		t := &s.Server.Threads[i]
		busy := 0.0
		if t.RunSeconds > 0 {
			busy = t.BusySeconds / t.RunSeconds
		}
		rows = append(rows, cli.Row(t.Name, number(t.CPU), number(t.Node), t.Connections, percent(busy),
			t.Looks, t.LooksInVain, t.Handovers, bytesize.Text(t.BufferUsedBytes)+" of "+bytesize.Text(t.BufferBytes)))
	}
	cli.Table(w, cli.Row("THREAD", "CPU", "NODE", "CONNECTIONS", "BUSY", "LOOKS"+per, "EMPTY"+per, "HAND-OVERS"+per, "BUFFERS"), rows)
}

// number shows -1 as none.
func number(n int) string {
	if n < 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

func share(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

func percent(share float64) string { return strconv.FormatFloat(100*share, 'f', 1, 64) + "%" }

// ratio is the share of hits, if there was anything to hit.
func ratio(hits, misses uint64) string {
	if hits+misses == 0 {
		return "-"
	}
	return percent(control.Ratio(hits, misses))
}
