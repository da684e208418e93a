package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"lunar/internal/control"
)

// render prints a status as tables. per follows the heads of columns that count:
// "/s" for rates.
func render(w io.Writer, s *control.Status, per string) {
	fmt.Fprintf(w, "tgtd %s (%s), pid %d, up %v\n", s.Server.Version, s.Server.Build, s.Server.PID,
		(time.Duration(s.Server.UptimeSeconds) * time.Second).String())
	for _, warning := range s.Warnings {
		fmt.Fprintf(w, "warning: %s\n", printable(warning))
	}
	for _, d := range s.Drift {
		fmt.Fprintf(w, "differs from the configuration file: %s: %s\n", d.Kind, printable(d.What))
	}
	for i := range s.Volumes {
		for _, t := range s.Volumes[i].Health.Troubles {
			fmt.Fprintf(w, "volume %s: %s since %s: %s\n", printable(s.Volumes[i].Name), strings.ToUpper(t.State), t.Since.Format(time.DateTime), printable(t.What))
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
		fmt.Fprintf(w, "\niSER is off: %s\n", printable(s.RDMA.Off))
		return
	}
	var rows []string
	for i := range s.RDMA.Devices {
		d := &s.RDMA.Devices[i]
		rows = append(rows, row(d.Name, d.Connections, size(d.RegisteredBytes), d.Receives, d.Sends, d.Writes, usize(d.WriteBytes), d.Reads, usize(d.ReadBytes),
			d.Posts, d.Failures))
	}
	table(w, row("RDMA DEVICE", "CONNECTIONS", "REGISTERED", "PDUS IN"+per, "PDUS OUT"+per, "WRITES"+per, "WRITTEN"+per, "READS"+per, "READ"+per, "POSTS"+per, "FAILURES"), rows)
}

// table prints rows of columns that are parted by tabs.
func table(w io.Writer, head string, rows []string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\n%s\n", head)
	for _, row := range rows {
		fmt.Fprintln(t, row)
	}
	t.Flush()
}

// row joins columns.
func row(columns ...any) string {
	var out []string
	for _, c := range columns {
		out = append(out, printable(fmt.Sprint(c)))
	}
	return strings.Join(out, "\t")
}

// printable keeps what initiators call themselves from changing the terminal or
// the table.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

func renderVolumes(w io.Writer, s *control.Status, per string) {
	var rows []string
	for i := range s.Volumes {
		v := &s.Volumes[i]
		cached, dirty, hits := "-", "-", "-"
		if c := v.Cache; c != nil {
			cached, dirty, hits = size(c.ResidentBytes), size(c.DirtyBytes), ratio(c.Hits, c.Misses)
		}
		rows = append(rows, row(v.Name, v.Type, size(v.SizeBytes), v.Write, v.IO.Reads, usize(v.IO.ReadBytes), v.IO.Writes, usize(v.IO.WrittenBytes),
			cached, dirty, hits, remarks(v)))
	}
	table(w, row("VOLUME", "TYPE", "SIZE", "WRITE", "READS"+per, "READ"+per, "WRITES"+per, "WRITTEN"+per, "CACHED", "DIRTY", "HITS", "STATE"), rows)
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
		out = append(out, "protection of "+counted(int(v.Anew), "block")+" made anew")
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
	fmt.Fprintf(t, "\nCACHE\t%s in blocks of %s, %s used (%s)\n", size(c.SizeBytes), size(c.BlockBytes), size(c.UsedBytes), percent(share(c.UsedBytes, c.SizeBytes)))
	fmt.Fprintf(t, "hit ratio\t%s (%d%s hits, %d%s misses)\n", percent(c.HitRatio), c.Hits, per, c.Misses, per)
	fmt.Fprintf(t, "dirty\t%s of %s, %s%s written, %d%s write errors\n", size(c.DirtyBytes), size(c.DirtyLimitBytes), usize(c.FlushedBytes), per, c.FlushErrors, per)
	fmt.Fprintf(t, "throttled\t%d%s writes, %d wait now\n", c.ThrottledWrites, per, c.WaitingWrites)
	fmt.Fprintf(t, "evictions\t%d%s, %d%s bypassed, %s%s read ahead\n", c.Evictions, per, c.Bypassed, per, usize(c.ReadAheadBytes), per)
	fmt.Fprintf(t, "forwards\t%s\n", forwards(c, per))
	if c.Attach != nil {
		fmt.Fprintf(t, "re-attach\t%s\n", attachment(c.Attach))
	}
	t.Flush()
	var rows []string
	for i := range c.Nodes {
		n := &c.Nodes[i]
		rows = append(rows, row(n.Node, n.Partitions, size(n.SizeBytes), size(n.UsedBytes), size(n.DirtyBytes), ratio(n.Hits, n.Misses),
			n.Evictions, usize(n.LocalBytes), usize(n.RemoteBytes), usize(n.ForwardedBytes)))
	}
	table(w, row("NODE", "PARTITIONS", "SIZE", "USED", "DIRTY", "HITS", "EVICTIONS"+per, "LOCAL"+per, "REMOTE"+per, "FORWARDED"+per), rows)
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
	text := fmt.Sprintf("%d%s requests, %s%s", requests, per, usize(bytes), per)
	if c.ForwardThreshold == nil {
		text += ", now none of any size"
	} else {
		text += ", from " + size(*c.ForwardThreshold) + " on"
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
		text = printable(a.Outcome)
	}
	if a.WarmBlocks > 0 || a.DirtyBytes > 0 {
		text += fmt.Sprintf("; %d blocks taken over, %s of them dirty", a.WarmBlocks, size(a.DirtyBytes))
	}
	if a.Dropped > 0 {
		text += fmt.Sprintf("; %d blocks dropped", a.Dropped)
	}
	if a.Replaced != "" {
		text += "; another one was replaced: " + printable(a.Replaced)
	}
	for _, o := range a.Orphans {
		text += fmt.Sprintf("; %s are kept for volume %s, which is not configured any more", size(o.DirtyBytes), printable(o.Name))
	}
	return text
}

func renderSessions(w io.Writer, s *control.Status, per string) {
	var rows []string
	for i := range s.Sessions {
		n := &s.Sessions[i]
		if n.Target == "" {
			rows = append(rows, row(n.TSIH, n.Initiator, n.Address, n.Transport, "(discovery)", "-", n.Thread, inFlight(n), "-", "-", "-", "-"))
		}
		for j := range n.LUNs {
			l := &n.LUNs[j]
			rows = append(rows, row(n.TSIH, n.Initiator, n.Address, n.Transport, n.Target, fmt.Sprintf("%d %s", l.LUN, l.Volume), n.Thread, inFlight(n),
				l.IO.Reads, usize(l.IO.ReadBytes), l.IO.Writes, usize(l.IO.WrittenBytes)))
		}
	}
	if rows == nil {
		fmt.Fprintln(w, "\nNo sessions.")
		return
	}
	table(w, row("SESSION", "INITIATOR", "ADDRESS", "BY", "TARGET", "LUN", "THREAD", "IN FLIGHT", "READS"+per, "READ"+per, "WRITES"+per, "WRITTEN"+per), rows)
}

// renderConnections lists the connections of all sessions.
func renderConnections(w io.Writer, s *control.Status) {
	var rows []string
	for i := range s.Sessions {
		n := &s.Sessions[i]
		for j := range n.Connections {
			c := &n.Connections[j]
			rows = append(rows, row(n.TSIH, c.CID, c.Address, c.Portal, c.Transport, c.Thread, c.State, usize(c.ReadBytes), usize(c.WrittenBytes)))
		}
	}
	if rows != nil {
		table(w, row("SESSION", "CONNECTION", "ADDRESS", "PORTAL", "BY", "THREAD", "STATE", "READ", "WRITTEN"), rows)
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
		rows = append(rows, row(t.Name, number(t.CPU), number(t.Node), t.Connections, percent(busy),
			t.BatchLevel, t.Looks, t.LooksInVain, t.Handovers, size(t.BufferUsedBytes)+" of "+size(t.BufferBytes)))
	}
	table(w, row("THREAD", "CPU", "NODE", "CONNECTIONS", "BUSY", "BATCH", "LOOKS"+per, "IN VAIN"+per, "HAND-OVERS"+per, "BUFFERS"), rows)
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

func size(bytes int64) string { return usize(uint64(max(bytes, 0))) }

// usize writes bytes with three digits and a binary unit.
func usize(bytes uint64) string {
	const units = "KMGTPE"
	if bytes < 1<<10 {
		return strconv.FormatUint(bytes, 10) + "B"
	}
	value, unit := float64(bytes)/(1<<10), 0
	for value >= 999.5 && unit < len(units)-1 {
		value, unit = value/(1<<10), unit+1
	}
	return strconv.FormatFloat(value, 'g', 3, 64) + units[unit:unit+1] + "iB"
}
