package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	profileTime  = 3 * time.Second
	profileLines = 12
)

// profile samples a server under a workload. Virtual
// machines often have no cycle counter, so it asks for the CPU clock.
func (c client) profile(ctx context.Context, s *server, w workload) (string, error) {
	dir, err := os.MkdirTemp("", "lunar-perf-")
	if err != nil {
		return "", fmt.Errorf("work directory: %w", err)
	}
	defer os.RemoveAll(dir)
	data := filepath.Join(dir, "perf.data")
	line := slices.Concat(c.before, []string{"perf", "record", "-q", "-e", "cpu-clock", "-F", "1999", "-p", strconv.Itoa(s.pid()),
		"-o", data, "--", "sleep", fmt.Sprint((profileTime - time.Second).Seconds())})
	recorder := exec.CommandContext(ctx, line[0], line[1:]...)
	if err := recorder.Start(); err != nil {
		return "", fmt.Errorf("perf: %w", err)
	}
	r, _, err := c.run(ctx, s, w, profileTime)
	if waited := recorder.Wait(); waited != nil || err != nil {
		return "", fmt.Errorf("perf record: %v; load: %w", waited, err)
	}
	report, err := exec.CommandContext(ctx, "perf", "report", "-i", data, "--stdio", "--no-children", "--sort", "sym").Output()
	if err != nil {
		return "", fmt.Errorf("perf report: %w", err)
	}
	return profileTable(w.title, parseProfile(report), serverCPU(*r)), nil
}

// symbol is one line of a profile.
type symbol struct {
	percent float64
	kernel  bool
	name    string
}

var profileLine = regexp.MustCompile(`^\s*([0-9.]+)%\s+\[([k.])\]\s+(.+?)\s*$`)

func parseProfile(report []byte) []symbol {
	var list []symbol
	for line := range bytes.Lines(report) {
		m := profileLine.FindSubmatch(line)
		if m == nil {
			continue
		}
		percent, err := strconv.ParseFloat(string(m[1]), 64)
		if err == nil {
			list = append(list, symbol{percent, m[2][0] == 'k', string(m[3])})
		}
	}
	return list
}

// profileTable lists the heaviest symbols and how kernel and server share the
// CPU time.
func profileTable(title string, list []symbol, perIO float64) string {
	var b strings.Builder
	var inKernel, all float64
	for _, s := range list {
		all += s.percent
		if s.kernel {
			inKernel += s.percent
		}
	}
	if all == 0 {
		return "The profile is empty.\n"
	}
	fmt.Fprintf(&b, "%s: %.2f µs of server CPU per I/O, %.0f %% of it in the kernel, %.0f %% in tgtd.\n\n",
		title, perIO, 100*inKernel/all, 100-100*inKernel/all)
	b.WriteString(bucketTable(list, all, perIO))
	b.WriteString("\n| CPU | where | symbol |\n|--:|---|---|\n")
	for _, s := range list[:min(len(list), profileLines)] {
		where := "tgtd"
		if s.kernel {
			where = "kernel"
		}
		fmt.Fprintf(&b, "| %.1f %% | %s | `%s` |\n", s.percent, where, s.name)
	}
	return b.String()
}
