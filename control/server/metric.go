package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"lunar/control"
)

// metric is a row of the tables: one value, or one for each of what labels
// name, made of a Status when it is scraped.
type metric struct {
	name   string
	unit   string // for the documentation
	help   string
	kind   prometheus.ValueType
	labels []string
	each   func(s *control.Status, emit emitter)
}

// emitter takes a value with those of the labels, in their order.
type emitter func(value float64, labels ...string)

// The kinds of metrics.
const (
	counter = prometheus.CounterValue
	gauge   = prometheus.GaugeValue
)

// distribution is a row of a table of histograms.
type distribution struct {
	name   string
	unit   string // for the documentation
	help   string
	labels []string
	each   func(s *control.Status, emit func(l *control.Latency, labels ...string))
}
