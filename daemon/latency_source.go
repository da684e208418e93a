package daemon

import (
	"cmp"

	"lunar/control"
	"lunar/control/server"
	"lunar/internal/latency"
)

// volumeBuckets are the bounds of a volume's histogram that are told, as powers of two of
// ns: from 66 us to 34 s. Each is one of the buckets that are counted.
var volumeBuckets = []int{16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 33, 35}

// Latency implements server.Source.
func (s *source) Latency() control.Latencies {
	r := s.daemon.Latency()
	out := control.Latencies{
		Interval: r.Interval.Seconds(), Replaced: r.Replaced,
		Volumes: []control.VolumeLatency{}, Initiators: []control.InitiatorLatency{}, Uses: []control.UseLatency{},
	}
	for _, v := range r.Volumes {
		told := control.VolumeLatency{Volume: v.Name, Total: []control.OperationLatency{}, Recent: recentOf(pointers(&v.Last))}
		for op := range latency.Operations {
			told.Total = append(told.Total, control.OperationLatency{Operation: op.String(), Latency: distribution(&v.Total[op])})
		}
		out.Volumes = append(out.Volumes, told)
	}
	for _, i := range r.Initiators {
		told := control.InitiatorLatency{
			Initiator: i.Initiator, User: server.Sayable(i.User), Total: []control.OperationTotal{}, Recent: recentOf(pointers(&i.Last)),
		}
		for op := range latency.Operations {
			told.Total = append(told.Total, control.OperationTotal{Operation: op.String(), Count: i.Total[op].Count, Sum: float64(i.Total[op].Sum) / 1e9})
		}
		out.Initiators = append(out.Initiators, told)
	}
	for i := range r.Uses {
		u := &r.Uses[i]
		out.Uses = append(out.Uses, control.UseLatency{
			Volume: u.Volume, Initiator: cmp.Or(u.Initiator, control.Others), User: server.Sayable(u.User), Recent: recentOf(u.Last),
		})
	}
	return out
}

func pointers(c *[latency.Operations]latency.Counts) (p [latency.Operations]*latency.Counts) {
	for op := range c {
		p[op] = &c[op]
	}
	return p
}

// recentOf is the operations that there were.
func recentOf(c [latency.Operations]*latency.Counts) []control.OperationQuantile {
	out := []control.OperationQuantile{}
	for op := range latency.Operations {
		if c[op] == nil {
			continue
		}
		if n := c[op].Count(); n > 0 {
			q := control.OperationQuantile{Operation: op.String(), Count: n, Mean: float64(c[op].Sum) / 1e9 / float64(n), Max: float64(c[op].Max) / 1e9}
			quantiles(c[op], &q.P50, &q.P90, &q.P99, &q.P999)
			out = append(out, q)
		}
	}
	return out
}

func quantiles(c *latency.Counts, p50, p90, p99, p999 *float64) {
	*p50, *p90, *p99, *p999 = c.Quantile(.5)/1e9, c.Quantile(.9)/1e9, c.Quantile(.99)/1e9, c.Quantile(.999)/1e9
}

func distribution(c *latency.Counts) control.Latency {
	l := control.Latency{Count: int64(c.Count()), Sum: float64(c.Sum) / 1e9, Max: float64(c.Max) / 1e9, Buckets: []control.Bucket{}}
	quantiles(c, &l.P50, &l.P90, &l.P99, &l.P999)
	for _, bits := range volumeBuckets {
		l.Buckets = append(l.Buckets, control.Bucket{Below: float64(int64(1)<<bits) / 1e9, Count: int64(c.Below(bits))})
	}
	return l
}
