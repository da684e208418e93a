package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"lunar/internal/initiator/load"
)

// tool is a load generator: its command line, and what it says at the end.
type tool struct {
	name      string
	arguments func(c client, s *server, w workload, runtime time.Duration) []string
	result    func(out []byte, w workload, spent usage) (*load.Result, error)
}

// usage is what was spent on a run from outside, for a tool that does not tell.
type usage struct {
	runtime        time.Duration
	server, client time.Duration // CPU time
}

// tgtload sleeps while there is nothing to do, as initiators do.
var tgtload = tool{"tgtload", tgtloadArguments, tgtloadResult}

// tgtloadPolling looks for responses all the time, so that no server has to wake it.
var tgtloadPolling = tool{"tgtload --poll", tgtloadArguments, tgtloadResult}.with("--poll", "20ms")

// replaces tells whether a contender's own tool can measure a workload instead of its.
func (t tool) replaces(w workload) bool { return t.name == w.tool.name }

// with adds options to the command line.
func (t tool) with(options ...string) tool {
	before := t.arguments
	t.arguments = func(c client, s *server, w workload, runtime time.Duration) []string {
		return append(before(c, s, w, runtime), options...)
	}
	return t
}

func tgtloadResult(out []byte, _ workload, _ usage) (*load.Result, error) { return parseResult(out) }

func tgtloadArguments(c client, s *server, w workload, runtime time.Duration) []string {
	line := []string{c.path, "--target", s.urls[w.volume], "--json",
		"--cpu", strconv.Itoa(c.cpu), "--server-pid", strconv.Itoa(s.pid()),
		"--warmup", c.plan.warmup.String(), "--runtime", runtime.String(),
		"--rw", w.rw, "--bs", strconv.Itoa(w.kib) + "k", "--depth", strconv.Itoa(w.depth), "--connections", strconv.Itoa(w.connections), "--read-percent", mixedReads}
	if w.span > 0 {
		line = append(line, "--size", strconv.Itoa(w.span)+"m")
	}
	return line
}

// parseResult accepts only runs without a bad status.
func parseResult(out []byte) (*load.Result, error) {
	var r load.Result
	if err := json.Unmarshal(out, &r); err != nil {
		return nil, fmt.Errorf("tgtload's result: %w", err)
	}
	if len(r.Statuses) > 0 || r.IOPS == 0 || r.ServerCPU == nil {
		return nil, fmt.Errorf("tgtload's result %s: expected a rate, server CPU time and no bad status", out)
	}
	return &r, nil
}

// iscsiPerf is libiscsi's client. It only reads, for whole seconds, on one
// connection, and counts in logical blocks: its random addresses are multiples
// of one, so that the volumes have blocks of 4 KiB.
var iscsiPerf = tool{"iscsi-perf", iscsiPerfArguments, parseIscsiPerf}

const logicalBlockKiB = 4

// wholeSeconds is the runtime that iscsi-perf is given.
func wholeSeconds(d time.Duration) time.Duration { return max(d.Round(time.Second), time.Second) }

func iscsiPerfArguments(_ client, s *server, w workload, runtime time.Duration) []string {
	line := []string{"iscsi-perf", "-m", strconv.Itoa(w.depth), "-b", strconv.Itoa(w.kib / logicalBlockKiB),
		"-t", strconv.Itoa(int(wholeSeconds(runtime) / time.Second))}
	if w.rw == "randread" {
		line = append(line, "-r")
	}
	return append(line, s.urls[w.volume])
}

var iscsiPerfRate = regexp.MustCompile(`iops average (\d+) `)

// parseIscsiPerf takes the average that is printed last. CPU time per I/O is that
// of both processes from before the login until after the logout.
func parseIscsiPerf(out []byte, w workload, spent usage) (*load.Result, error) {
	all := iscsiPerfRate.FindAllSubmatch(out, -1)
	if len(all) == 0 {
		return nil, fmt.Errorf("iscsi-perf's output %q: expected \"iops average N\"", out)
	}
	rate, err := strconv.ParseFloat(string(all[len(all)-1][1]), 64)
	if err != nil || rate == 0 {
		return nil, fmt.Errorf("iscsi-perf's output %q: expected a rate that is not 0", out)
	}
	seconds := wholeSeconds(spent.runtime).Seconds()
	perIO := func(t time.Duration) load.CPU {
		return load.CPU{Seconds: t.Seconds(), PerIO: t.Seconds() * 1e6 / (rate * seconds)}
	}
	server := perIO(spent.server)
	return &load.Result{Seconds: seconds, IOPS: rate, BytesPerSecond: rate * float64(w.kib) * 1024,
		ServerCPU: &server, ClientCPU: perIO(spent.client), Connections: load.Spread{Count: 1, Min: rate, Mean: rate, Max: rate}}, nil
}
