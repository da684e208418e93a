package server

import (
	"github.com/danielgtaylor/huma/v2"
	"github.com/prometheus/client_golang/prometheus"

	"lunar/control"
)

func addLatency(api huma.API, s Source) {
	get(api, control.LatencyPath, "How long commands take", func() (control.Latencies, error) { return s.Latency(), nil })
}

func eachLatency(s *control.Status, yield func(*control.Latencies, ...string)) {
	if s.Latencies != nil {
		yield(s.Latencies)
	}
}

var latencyDistributions = []distribution{
	{"lunar_volume_latency_seconds", "s", "Time from when a command that uses the medium was noticed to when it was answered.", []string{"volume", "operation"},
		func(s *control.Status, emit func(*control.Latency, ...string)) {
			eachLatency(s, func(all *control.Latencies, _ ...string) {
				for i := range all.Volumes {
					v := &all.Volumes[i]
					for j := range v.Total {
						emit(&v.Total[j].Latency, v.Volume, v.Total[j].Operation)
					}
				}
			})
		}},
}

// summary is a row of a table of summaries: sums with the quantiles of the last interval.
type summary struct {
	name   string
	unit   string // for the documentation
	help   string
	labels []string
	each   func(s *control.Status, emit func(of *control.OperationTotal, last *control.OperationQuantile, labels ...string))
}

var latencySummaries = []summary{
	{"lunar_initiator_latency_seconds", "s", "The same of an initiator's commands to all volumes: quantile is of the last 10 seconds, 1 is the longest; absent if there were none.",
		[]string{"initiator", "user", "operation"},
		func(s *control.Status, emit func(*control.OperationTotal, *control.OperationQuantile, ...string)) {
			eachLatency(s, func(all *control.Latencies, _ ...string) {
				for i := range all.Initiators {
					n := &all.Initiators[i]
					for j := range n.Total {
						emit(&n.Total[j], recent(n.Recent, n.Total[j].Operation), n.Initiator, n.User, n.Total[j].Operation)
					}
				}
			})
		}},
}

// recent is the one of an operation; nil: there were none.
func recent(all []control.OperationQuantile, operation string) *control.OperationQuantile {
	for i := range all {
		if all[i].Operation == operation {
			return &all[i]
		}
	}
	return nil
}

// collect makes the metric.
func (*summary) collect(desc *prometheus.Desc, of *control.OperationTotal, last *control.OperationQuantile, labels []string) prometheus.Metric {
	quantiles := map[float64]float64{}
	if last != nil {
		quantiles = map[float64]float64{0.5: last.P50, 0.99: last.P99, 1: last.Max}
	}
	return prometheus.MustNewConstSummary(desc, of.Count, of.Sum, quantiles, labels...)
}
