package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"lunar/internal/initiator/load"
)

// writeText prints a result for people.
func writeText(out io.Writer, r *load.Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "rate        %.0f IOPS, %.1f MB/s over %.2f s (%d reads, %d writes)\n",
		r.IOPS, r.BytesPerSecond/1e6, r.Seconds, r.Reads, r.Writes)
	l := r.Latency
	fmt.Fprintf(&b, "latency us  mean %.1f  50%% %.1f  90%% %.1f  99%% %.1f  99.9%% %.1f  max %.1f\n",
		l.Mean, l.P50, l.P90, l.P99, l.P999, l.Max)
	s := r.Connections
	fmt.Fprintf(&b, "connections %d: min %.0f, mean %.0f, max %.0f IOPS\n", s.Count, s.Min, s.Mean, s.Max)
	fmt.Fprintf(&b, "client CPU  %.2f us per I/O, busy for %.0f %% of the time\n", r.ClientCPU.PerIO, 100*r.ClientBusy)
	if r.ServerCPU != nil {
		fmt.Fprintf(&b, "server CPU  %.2f us per I/O\n", r.ServerCPU.PerIO)
	}
	for _, status := range slices.Sorted(maps.Keys(r.Statuses)) {
		fmt.Fprintf(&b, "status      %s: %d commands\n", status, r.Statuses[status])
	}
	if f := r.FirstFailure; f != nil {
		fmt.Fprintf(&b, "failure     first: status %#02x, sense %s, LBA %d, %d blocks, write %t\n",
			f.Status, f.Sense, f.LBA, f.Blocks, f.Write)
	}
	if v := r.Verification; v != nil {
		fmt.Fprintf(&b, "verified    %d blocks, %d miscompares %s\n", v.Checked, v.Miscompares, v.First)
	}
	_, err := io.WriteString(out, b.String())
	return err
}
