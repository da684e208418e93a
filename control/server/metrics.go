package server

import (
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"lunar/control"
)

// collector reads all metrics at the time of a scrape.
type collector struct {
	source     Source
	rows       []metric
	descs      []*prometheus.Desc // of rows
	spreads    []distribution
	histograms []*prometheus.Desc // of spreads
	sums       []*prometheus.Desc // of latencySummaries
	reading    sync.Mutex         // one walk over the counters at a time
}

func newCollector(s Source) *collector {
	c := &collector{source: s, rows: allMetrics(), spreads: allDistributions()}
	for i := range c.rows {
		m := &c.rows[i]
		c.descs = append(c.descs, prometheus.NewDesc(m.name, m.help, m.labels, nil))
	}
	for i := range c.spreads {
		d := &c.spreads[i]
		c.histograms = append(c.histograms, prometheus.NewDesc(d.name, d.help, d.labels, nil))
	}
	for i := range latencySummaries {
		m := &latencySummaries[i]
		c.sums = append(c.sums, prometheus.NewDesc(m.name, m.help, m.labels, nil))
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		to <- d
	}
	for _, d := range slices.Concat(c.histograms, c.sums) {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	c.reading.Lock()
	s := c.source.Status()
	latency := c.source.Latency()
	c.reading.Unlock()
	s.Latencies = &latency
	for i := range c.rows {
		m := &c.rows[i]
		m.each(&s, func(value float64, labels ...string) {
			to <- prometheus.MustNewConstMetric(c.descs[i], m.kind, value, sayable(labels)...)
		})
	}
	for i := range c.spreads {
		c.spreads[i].each(&s, func(l *control.Latency, labels ...string) {
			buckets := map[float64]uint64{}
			for _, b := range l.Buckets {
				buckets[b.Below] = uint64(b.Count)
			}
			to <- prometheus.MustNewConstHistogram(c.histograms[i], uint64(l.Count), l.Sum, buckets, sayable(labels)...)
		})
	}
	for i := range latencySummaries {
		m := &latencySummaries[i]
		m.each(&s, func(of *control.OperationTotal, last *control.OperationQuantile, labels ...string) {
			to <- m.collect(c.sums[i], of, last, sayable(labels))
		})
	}
}

// sayable makes labels valid: an initiator's name may hold anything.
func sayable(labels []string) []string {
	out := make([]string, len(labels))
	for i, text := range labels {
		out[i] = Sayable(text)
	}
	return out
}

// Sayable is a text as metrics have it. Names that differ only in what is not
// UTF-8 become the same, so that whoever sums by name has to sum by this.
func Sayable(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// scrape serves the metrics of s, of the Go runtime and of the process.
func scrape(s Source) http.Handler {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(newCollector(s), collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return newPages(promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		OfferedCompressions: []promhttp.Compression{promhttp.Identity, promhttp.Gzip},
	}))
}
