package nest

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"

	"lunar/scripts/sim/experiment"
	"lunar/scripts/sim/kernel"
	"lunar/scripts/sim/net"
)

// measuredText is what scripts/nest/measure.sh wrote: commands of 4 KiB over loopback.
//
//go:embed measured.json
var measuredText []byte

// measurement is a row of it.
type measurement struct {
	Load  string  `json:"load"` // read, write or rw
	Depth int     `json:"depth"`
	P50   float64 `json:"p50_us"`
	Mean  float64 `json:"mean_us"`
}

// measured are all rows, with the date and the machine.
type measured struct {
	Date    string        `json:"date"`
	Machine string        `json:"machine"`
	Loads   []measurement `json:"loads"`
}

func (m *measured) p50(load string, depth int) (float64, error) {
	for _, row := range m.Loads {
		if row.Load == load && row.Depth == depth && row.P50 > 0 {
			return row.P50, nil
		}
	}
	return 0, fmt.Errorf("measured.json has no %s at depth %d", load, depth)
}

// passes is a thread that works in passes, as the server's and the load generator's do: it
// takes all that is there, needs a time for the pass and one for each command, and gives all
// on.
type passes struct {
	kernel *kernel.Kernel
	r      *rand.Rand
	fixed  float64              // ps of a pass
	each   func(int) float64    // ps of a command
	give   func(commands []int) // where they go
	inbox  []int
	busy   bool
}

func (p *passes) take(commands []int) {
	p.inbox = append(p.inbox, commands...)
	p.next()
}

func (p *passes) next() {
	if p.busy || len(p.inbox) == 0 {
		return
	}
	took, taken := p.fixed, p.inbox
	for _, c := range taken {
		took += p.each(c)
	}
	p.busy, p.inbox = true, nil
	took *= 0.75 + p.r.Float64()/2 // the same on the mean
	p.kernel.After(int64(took), kernel.Completion, func() {
		p.busy = false
		p.give(taken)
		p.next()
	})
}

// costs are what a command and a pass cost at each end, in us.
type costs struct{ pass, read, write float64 }

// closed is a client that keeps so many commands outstanding, of which reads are a share. It
// returns the median latency in us.
func (c costs) closed(seed uint64, depth int, reads float64) float64 {
	const commands = 40_000
	var k kernel.Kernel
	r := kernel.NewRand(seed, 0)
	writes := make([]bool, depth)
	began := make([]int64, depth)
	all := &source{kernel: &k}
	each := func(i int) float64 {
		if writes[i] {
			return c.write * float64(net.Microsecond)
		}
		return c.read * float64(net.Microsecond)
	}
	server := &passes{kernel: &k, r: kernel.NewRand(seed, 1), fixed: c.pass * float64(net.Microsecond), each: each}
	client := &passes{kernel: &k, r: kernel.NewRand(seed, 2), fixed: c.pass * float64(net.Microsecond), each: each}
	server.give = client.take
	client.give = func(done []int) {
		for _, i := range done {
			all.latencies = append(all.latencies, k.Now()-began[i])
			began[i], writes[i] = k.Now(), r.Float64() >= reads
		}
		server.take(done)
	}
	first := make([]int, depth)
	for i := range first {
		first[i], writes[i] = i, r.Float64() >= reads
	}
	server.take(first)
	for len(all.latencies) < commands {
		k.Run(k.Now() + net.Millisecond)
	}
	all.latencies = all.latencies[commands/10:]
	return all.percentile(50)
}

// calibrate finds the costs with which depths 1 and 32 take what was measured: of a command
// that is alone a pass and a command at each end.
func calibrate(seed uint64, one, many, reads float64) (pass, each float64) {
	low, high := 0.0, one/2
	for range 20 {
		each = (low + high) / 2
		pass = one/2 - each
		if (costs{pass, each, each}).closed(seed, 32, reads) < many {
			low = each
		} else {
			high = each
		}
	}
	return pass, each
}

func runBase(env *experiment.Env, r *experiment.Result) error {
	stations(env, r)
	var m measured
	if err := json.Unmarshal(measuredText, &m); err != nil {
		return fmt.Errorf("measured.json: %w", err)
	}
	found := map[string]float64{}
	for _, load := range []string{"read", "write"} {
		for _, depth := range []int{1, 32} {
			us, err := m.p50(load, depth)
			if err != nil {
				return err
			}
			found[fmt.Sprint(load, depth)] = us
		}
	}
	pass, read := calibrate(env.Seed, found["read1"], found["read32"], 1)
	_, write := calibrate(env.Seed, found["write1"], found["write32"], 0)
	c := costs{pass, read, write}
	r.Note("measured on", "", m.Date+", "+m.Machine, "scripts/nest/measure.sh, medians of the best rounds: other work of the machine moves all else")
	r.Note("calibrated at depths 1 and 32: a pass, a read and a write at each end, us", "", three([]float64{pass, read, write}), "")
	worst := 0.0
	r.Model()
	for _, row := range m.Loads {
		if row.Depth == 1 || row.Depth == 32 {
			continue
		}
		reads := map[string]float64{"read": 1, "write": 0, "rw": 0.5}[row.Load]
		got := c.closed(env.Seed, row.Depth, reads)
		off := 100 * (got/row.P50 - 1)
		worst = max(worst, math.Abs(off))
		r.Claim(fmt.Sprintf("%s at depth %d, predicted us", row.Load, row.Depth), fmt.Sprintf("%.1f measured", row.P50), "±7.5 %",
			fmt.Sprintf("%.1f (%+.1f %%)", got, off), math.Abs(off) <= 7.5, "two costs per end do not describe it")
	}
	r.Note("accuracy, the worst prediction, in %", "92.5", fmt.Sprintf("%.1f", 100-worst), "")
	return nil
}

// stations compares the kernel's stations with queueing theory, at 70 % load.
func stations(env *experiment.Env, r *experiment.Result) {
	jobs := 2_000_000
	if env.Reduced {
		jobs = 1_000_000
	}
	r.Model()
	for _, q := range []struct {
		name    string
		service func(*rand.Rand) float64
		want    float64
	}{
		{"M/M/1: mean stay in services", (*rand.Rand).ExpFloat64, 1 / (1 - 0.7)},
		{"M/D/1: mean stay in services", func(*rand.Rand) float64 { return 1 }, 1 + 0.7/(2*(1-0.7))},
	} {
		const mean = 10 * net.Microsecond
		var k kernel.Kernel
		arrivals, services := kernel.NewRand(env.Seed, 0), kernel.NewRand(env.Seed, 1)
		s := kernel.NewStation(&k)
		total, left := 0.0, jobs
		var arrive func()
		arrive = func() {
			at := k.Now()
			s.Serve(int64(q.service(services)*float64(mean)), func() { total += float64(k.Now() - at) })
			if left--; left > 0 {
				k.After(int64(arrivals.ExpFloat64()*float64(mean)/0.7), kernel.Arrival, arrive)
			}
		}
		k.After(0, kernel.Arrival, arrive)
		k.Drain()
		r.Near(q.name, "", total/float64(jobs)/float64(mean), q.want, 0.02)
	}
}
