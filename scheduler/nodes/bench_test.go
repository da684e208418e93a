package nodes

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"lunar/scheduler"
)

// crowd is 16 nodes with 10,000 initiators in all, each of them on some nodes.
type crowd struct {
	rng     *rand.Rand
	living  []string
	nodes   []*Node
	reports []*scheduler.GateReport
	c       *Controller
	now     int64
	bytes   int
}

// newCrowd has every third initiator want more than it has on all its nodes, or on every other one of
// them: then what it has there has to move.
func newCrowd(on int, uneven bool) *crowd {
	const many, initiators = 16, 10_000
	b := &crowd{rng: rand.New(rand.NewPCG(1, 2)), c: NewController(Config{Term: 1, Profiles: map[string]int64{pool: 2e6}})}
	for i := range many {
		b.living, b.nodes = append(b.living, fmt.Sprint("n", i)), append(b.nodes, &Node{Shared: isPool})
		b.reports = append(b.reports, &scheduler.GateReport{Servers: []scheduler.ServerReport{{Device: &scheduler.Device{Name: pool}, Number: 1, Threads: 4, Backlogged: true}}})
	}
	for i := range initiators {
		for k := range on {
			node := (i + k*many/on) % many
			s := &b.reports[node].Servers[0]
			s.Entities = append(s.Entities, scheduler.EntityReport{
				Entity: fmt.Sprintf("initiator iqn.1994-05.com.redhat:host-%05d.example", i), Number: int64(i + 2), Level: scheduler.InitiatorLevel, Root: true,
				Reservation: 100, Limit: 300, Backlogged: i%3 == 0 && (!uneven || node%2 == 0),
			})
		}
	}
	return b
}

// interval has the nodes be used, each initiator by other rates than before.
func (b *crowd) interval() {
	for _, r := range b.reports {
		s := &r.Servers[0]
		each := int64(10_000 * 20 / len(s.Entities) / 16)
		for n := range s.Entities {
			e := &s.Entities[n]
			asked := b.rng.Int64N(2*each + 1)
			e.Offered, e.Served, e.Queued = e.Offered+asked, e.Served+asked, b.rng.Int64N(3)
			s.Done += asked
		}
		s.Residual = b.rng.Int64N(1000)
	}
}

// answer is node i's.
func (b *crowd) answer(tb testing.TB, i int) []byte {
	a := b.c.Ask(b.living[i])
	report, err := b.nodes[i].Answer(a.Append(nil), b.now, func(r *scheduler.GateReport) {
		from := &b.reports[i].Servers[0]
		if len(r.Servers) == 0 {
			r.Servers = append(r.Servers, scheduler.ServerReport{})
		}
		kept := append(r.Servers[0].Entities[:0], from.Entities...)
		r.Servers[0] = *from
		r.Servers[0].Entities = kept
	})
	if err != nil {
		tb.Fatal(err)
	}
	b.bytes += len(report)
	return report
}

// deal is what the controller does in an interval.
func (b *crowd) deal(tb testing.TB, reports [][]byte, grant []byte) []byte {
	for i, name := range b.living {
		if err := b.c.Hear(name, reports[i], b.now); err != nil {
			tb.Fatal(err)
		}
	}
	b.c.Deal(b.now, b.living)
	for _, name := range b.living {
		grant = b.c.Grant(name, b.now, grant[:0])
		b.bytes += len(grant)
	}
	return grant
}

// BenchmarkInterval is one interval of 16 nodes with 10,000 initiators, of which each is on 1, 2
// or all nodes, and of all nodes also where the demand is uneven: what the controller does from the reports to the grants, and how many bytes a
// second all messages are.
func BenchmarkInterval(b *testing.B) {
	for _, d := range []struct {
		on     int
		uneven bool
	}{{1, false}, {2, false}, {16, false}, {16, true}} {
		b.Run(fmt.Sprintf("on=%d/uneven=%t", d.on, d.uneven), func(b *testing.B) {
			c := newCrowd(d.on, d.uneven)
			var grant []byte
			reports := make([][]byte, len(c.living))
			step := func() {
				c.now += Interval
				c.interval()
				for i := range c.living {
					reports[i] = c.answer(b, i)
				}
			}
			for range intervals {
				step()
				grant = c.deal(b, reports, grant)
			}
			c.bytes = 0
			var used time.Duration
			b.ResetTimer()
			for range b.N {
				b.StopTimer()
				step()
				b.StartTimer()
				began := cpu()
				grant = c.deal(b, reports, grant)
				used += cpu() - began
			}
			b.ReportMetric(used.Seconds()*1e3/float64(b.N), "cpu-ms/op")
			b.ReportMetric(float64(c.bytes)*intervals/float64(b.N)/1e6, "MB/s")
		})
	}
}

// cpu is the time that the process has had of processors: beside others it says more than the clock.
func cpu() time.Duration {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r) // it is there
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// BenchmarkAnswer is a node's report of 10,000 initiators.
func BenchmarkAnswer(b *testing.B) {
	c := newCrowd(16, false)
	for range b.N {
		b.StopTimer()
		c.interval()
		b.StartTimer()
		c.answer(b, 0)
	}
}
