package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// holding is what a process holds at a time.
type holding struct {
	at                            time.Duration
	resident                      float64 // bytes that are its own: shared memory is as large as configured
	heap                          float64 // bytes in use of Go's heap
	goroutines, threads, sessions float64
	descriptors                   float64
}

// quantity is a column of the table and what may be added to it in a soak.
type quantity struct {
	name  string
	of    func(holding) float64
	unit  float64
	share float64 // of growth that is noise
	slack float64 // in units, besides
}

var quantities = []quantity{
	{"resident memory, MiB", func(l holding) float64 { return l.resident }, 1 << 20, 0.02, 4},
	{"Go heap in use, MiB", func(l holding) float64 { return l.heap }, 1 << 20, 0.05, 4},
	{"goroutines", func(l holding) float64 { return l.goroutines }, 1, 0, 4},
	{"threads", func(l holding) float64 { return l.threads }, 1, 0, 2},
	{"descriptors", func(l holding) float64 { return l.descriptors }, 1, 0, 8},
}

// watch looks at the process until ctx ends.
func (r *soak) watch(ctx context.Context) (looks []holding, err error) {
	began := time.Now()
	tick := time.NewTicker(r.command.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return looks, nil
		case <-tick.C:
		}
		l, err := r.look(ctx)
		if ctx.Err() != nil {
			return looks, nil
		}
		if err != nil {
			return looks, err
		}
		l.at = time.Since(began)
		looks = append(looks, l)
	}
}

// look asks the server's metrics and the kernel.
func (r *soak) look(ctx context.Context) (l holding, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.metrics, nil)
	if err != nil {
		return l, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return l, fmt.Errorf("metrics: %w", err)
	}
	defer response.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return l, fmt.Errorf("metrics: %w", err)
	}
	for name, to := range map[string]*float64{
		"go_goroutines": &l.goroutines, "go_memstats_heap_inuse_bytes": &l.heap,
		"process_open_fds": &l.descriptors, "lunar_sessions": &l.sessions,
	} {
		family := families[name]
		if family == nil || len(family.Metric) == 0 {
			return l, fmt.Errorf("metrics: no %s", name)
		}
		*to = family.Metric[0].GetGauge().GetValue()
	}
	return l, l.readProcess(r.server.pid())
}

// readProcess fills in what the kernel knows.
func (l *holding) readProcess(pid int) error {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return fmt.Errorf("process: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		var n float64
		name, value, _ := strings.Cut(line, ":")
		switch name {
		case "RssAnon":
			_, err = fmt.Sscanf(value, "%f kB", &n)
			l.resident = n * 1024
		case "Threads":
			_, err = fmt.Sscanf(value, "%f", &l.threads)
		}
		if err != nil {
			return fmt.Errorf("process: %s: %w", strings.TrimSpace(line), err)
		}
	}
	return nil
}

// errGrew says that what a soak looked at has grown, or that data were wrong.
var errGrew = errors.New("the soak failed")

// soakText is the document's section; the error names what has grown. The first
// quarter is the start: buffers, pools and the heap take their size in it.
func soakText(looks []holding, c soakCounts, took time.Duration) (string, error) {
	var b strings.Builder
	var failed []string
	quarter := len(looks) / 4
	if quarter < 2 {
		return "", fmt.Errorf("%d looks, expected 8 or more", len(looks))
	}
	fmt.Fprintf(&b, "%s; %s. %d sessions were opened, %d clients killed in the middle; those that ended by themselves did %.1f million commands (%.0f GiB) and checked %.1f million blocks: %d miscompares.\n\n",
		time.Now().UTC().Format("2006-01-02 15:04 UTC"), took.Round(time.Second), c.logins, c.killed,
		float64(c.commands)/1e6, float64(c.bytes)/(1<<30), float64(c.verified)/1e6, c.miscompares)
	if c.miscompares > 0 {
		failed = append(failed, fmt.Sprintf("%d miscompares", c.miscompares))
	}
	b.WriteString("| | second quarter, median | highest | last quarter, median | highest | grown |\n|---|--:|--:|--:|--:|---|\n")
	for _, q := range quantities {
		early, earlyTop := q.spread(looks[quarter : 2*quarter])
		late, lateTop := q.spread(looks[len(looks)-quarter:])
		verdict := "no"
		if late > early*(1+q.share)+q.slack {
			verdict = "**yes**"
			failed = append(failed, fmt.Sprintf("%s: found %.1f, expected about %.1f", q.name, late, early))
		}
		fmt.Fprintf(&b, "| %s | %.1f | %.1f | %.1f | %.1f | %s |\n", q.name, early, earlyTop, late, lateTop, verdict)
	}
	if len(failed) > 0 {
		return b.String(), fmt.Errorf("%w: %s", errGrew, strings.Join(failed, "; "))
	}
	return b.String(), nil
}

// spread returns the median and the highest in the quantity's unit.
func (q quantity) spread(looks []holding) (middle, top float64) {
	values := make([]float64, len(looks))
	for i, l := range looks {
		values[i] = q.of(l) / q.unit
	}
	slices.SortFunc(values, cmp.Compare[float64])
	return median(values), values[len(values)-1]
}
