package nest

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"

	"lunar/scripts/sim/experiment"
	"lunar/scripts/sim/kernel"
	"lunar/scripts/sim/net"
)

func runBase(env *experiment.Env, r *experiment.Result) error {
	stations(env, r)
	var m measured
	if err := json.Unmarshal(measuredText, &m); err != nil {
		return fmt.Errorf("measured.json: %w", err)
	}
	c, err := m.costs(env.Seed)
	if err != nil {
		return err
	}
	r.Note("measured on", "", m.Date+", "+m.Machine, "scripts/nest/measure.sh, medians; ratios are of the same round")
	for i, e := range []end{c.server, c.client} {
		r.Note(fmt.Sprintf("calibrated at depths 1 and 32, %s: a pass and a command, reads, then writes, us", []string{"server", "client"}[i]), "",
			fmt.Sprintf("%.2f, %.2f; %.2f, %.2f", e.read.pass, e.read.each, e.write.pass, e.write.each), "server and client in turns")
	}
	r.Note("how much longer it takes while both ends work", "", fmt.Sprintf("%.2f", c.slow), "by reads at depth 32")
	worst := 0.0
	r.Model()
	for _, row := range m.Loads {
		if row.Depth == 1 || row.Depth == 32 {
			continue
		}
		reads := map[string]float64{"read": 1, "write": 0, "rw": 0.5}[row.Load]
		got := c.closed(env.Seed, row.Depth, reads, false).latency
		off := 100 * (got/row.P50 - 1)
		worst = max(worst, math.Abs(off))
		r.Claim(fmt.Sprintf("%s at depth %d, predicted us", row.Load, row.Depth), fmt.Sprintf("%.1f measured", row.P50), "±7.5 %",
			fmt.Sprintf("%.1f (%+.1f %%)", got, off), math.Abs(off) <= 7.5,
			"commands cost what they do at depth 32, whose data are too many for the nearest cache")
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
