package load

import (
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"lunar/internal/initiator"
)

// Result is what a run measured. Rates are per second, times microseconds.
type Result struct {
	Seconds        float64           `json:"seconds"`
	Reads          uint64            `json:"reads"`
	Writes         uint64            `json:"writes"`
	IOPS           float64           `json:"iops"`
	BytesPerSecond float64           `json:"bytes_per_second"`
	Latency        Latency           `json:"latency_us"`
	Connections    Spread            `json:"connections"`
	ClientCPU      CPU               `json:"client_cpu"`
	ClientBusy     float64           `json:"client_busy"` // share of the time in which the client had something to do: near 1, it is what limits
	ServerCPU      *CPU              `json:"server_cpu,omitempty"`
	Statuses       map[string]uint64 `json:"scsi_status,omitempty"` // other than GOOD
	FirstFailure   *Failure          `json:"first_failure,omitempty"`
	Verification   *Verification     `json:"verification,omitempty"`
}

// Latency is the distribution from issuing a command to its status.
type Latency struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p99.9"`
	Max  float64 `json:"max"`
}

// Spread compares the connections: I/O per second of the slowest, of all on
// average, of the fastest.
type Spread struct {
	Count int     `json:"count"`
	Min   float64 `json:"min_iops"`
	Mean  float64 `json:"mean_iops"`
	Max   float64 `json:"max_iops"`
}

// CPU is processor time used in the measured time, by all threads.
type CPU struct {
	Seconds float64 `json:"seconds"`
	PerIO   float64 `json:"us_per_io"`
}

// Failure is a command that ended with another status than GOOD.
type Failure struct {
	Status byte   `json:"status"`
	Sense  string `json:"sense,omitempty"` // key/asc/ascq in hexadecimal
	Write  bool   `json:"write"`
	LBA    uint64 `json:"lba"`
	Blocks int    `json:"blocks"`
}

// Verification counts checked blocks; it covers warm-up and reading back too.
type Verification struct {
	Checked     uint64 `json:"blocks_checked"`
	Miscompares uint64 `json:"miscompares"` // commands that brought wrong data
	First       string `json:"first_miscompare,omitempty"`
}

// noteFailure keeps the first bad status, warm-up included.
func (e *engine) noteFailure(s *slot, p *initiator.PDU, status byte) {
	if e.failure != nil {
		return
	}
	e.failure = &Failure{Status: status, Write: s.op.write, LBA: s.op.lba, Blocks: s.op.blocks}
	if len(p.Data) > 2 {
		r := initiator.Result{Sense: p.Data[2:]}
		key, asc, ascq := r.SenseKey()
		e.failure.Sense = fmt.Sprintf("%02x/%02x/%02x", key, asc, ascq)
	}
}

func (e *engine) noteCheck(known int, bad *Miscompare) {
	e.check.Checked += uint64(known)
	if bad == nil {
		return
	}
	e.check.Miscompares++
	if e.check.First == "" {
		e.check.First = bad.Error()
	}
}

func (e *engine) result() *Result {
	r := &Result{
		Seconds:      time.Duration(e.to.wall - e.from.wall).Seconds(),
		Statuses:     map[string]uint64{},
		FirstFailure: e.failure,
	}
	if e.ledger != nil {
		r.Verification = &e.check
	}
	latency := hdrhistogram.New(1, maxLatency, 3)
	var bytes uint64
	var longest int64
	for _, c := range e.connections {
		r.Reads += c.count.reads
		r.Writes += c.count.writes
		bytes += c.count.bytes
		latency.Merge(c.latency)
		longest = max(longest, c.count.longest)
		r.addStatuses(&c.count)
	}
	r.IOPS = float64(r.Reads+r.Writes) / r.Seconds
	r.BytesPerSecond = float64(bytes) / r.Seconds
	r.Latency = summarize(latency, longest)
	r.Connections = e.spread(r.Seconds)
	r.addCPU(e)
	return r
}

func (r *Result) addStatuses(t *tally) {
	for status, n := range t.statuses {
		if status != initiator.StatusGood && n > 0 {
			r.Statuses[fmt.Sprintf("%#02x", status)] += n
		}
	}
}

func (r *Result) addCPU(e *engine) {
	r.ClientCPU = r.cpu(e.to.self - e.from.self)
	r.ClientBusy = 1 - (e.to.idle-e.from.idle).Seconds()/r.Seconds
	if len(e.workload.ServerPIDs) > 0 && e.from.server >= 0 && e.to.server >= e.from.server {
		server := r.cpu(e.to.server - e.from.server)
		r.ServerCPU = &server
	}
}

func (r *Result) cpu(used time.Duration) CPU {
	c := CPU{Seconds: used.Seconds()}
	if n := r.Reads + r.Writes; n > 0 {
		c.PerIO = used.Seconds() * 1e6 / float64(n)
	}
	return c
}

func (e *engine) spread(seconds float64) Spread {
	s := Spread{Count: len(e.connections)}
	for i, c := range e.connections {
		rate := float64(c.count.reads+c.count.writes) / seconds
		if i == 0 || rate < s.Min {
			s.Min = rate
		}
		s.Max = max(s.Max, rate)
		s.Mean += rate / float64(len(e.connections))
	}
	return s
}

// summarize bounds percentiles by the longest time, in ns: those of the histogram
// are upper edges of what it tells apart.
func summarize(h *hdrhistogram.Histogram, longest int64) Latency {
	us := func(ns int64) float64 { return float64(min(ns, longest)) / 1e3 }
	return Latency{
		Mean: min(h.Mean(), float64(longest)) / 1e3,
		P50:  us(h.ValueAtQuantile(50)), P90: us(h.ValueAtQuantile(90)),
		P99: us(h.ValueAtQuantile(99)), P999: us(h.ValueAtQuantile(99.9)), Max: us(longest),
	}
}
