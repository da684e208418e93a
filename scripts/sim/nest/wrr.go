package nest

import (
	"fmt"

	"lunar/scripts/sim/experiment"
	"lunar/scripts/sim/kernel"
	"lunar/scripts/sim/net"
)

// Scenarios of a device: no QoS, classes at the arbiter, and at the chips, too.
const (
	withoutQoS = iota
	arbiterOnly
	arbiterAndChips
	scenarios
)

// load is what a class asks of a device.
type load struct {
	tag   Tag
	share float64 // of the chips' time
	pages int     // of a command
	burst int
}

// onDevice runs loads on a device with 8 chips whose pages take 20 us, and returns the mean
// latency of each in us. inside is how many commands it has at once.
func onDevice(env *experiment.Env, scenario, inside int, loads []load) []float64 {
	const page, chips = 20 * net.Microsecond, 8
	length := 20 * net.Second
	if env.Reduced {
		length = 4 * net.Second
	}
	var k kernel.Kernel
	d := NewSSD(&k, Flash{
		Chips: chips, PageBytes: 4096, Read: page, Inside: inside, Arbiter: scenario >= arbiterOnly, ChipArbiter: scenario >= arbiterAndChips,
	}, kernel.NewRand(env.Seed, uint64(Tags)))
	var sources []*source
	for _, l := range loads {
		s := &source{kernel: &k, r: kernel.NewRand(env.Seed, uint64(l.tag)), gap: float64(page) * float64(l.pages) / (l.share * chips), burst: l.burst}
		s.ask = func(ended func(int64, int64)) {
			at, bytes := k.Now(), int64(l.pages)*4096
			d.Submit(&Command{Tag: l.tag, Bytes: bytes, Done: func(now int64) { ended(bytes, now-at) }})
		}
		s.start(length / 10)
		sources = append(sources, s)
	}
	k.Run(length)
	means := make([]float64, len(sources))
	for i, s := range sources {
		means[i] = s.mean()
	}
	return means
}

func three(x []float64) string { return fmt.Sprintf("%.1f, %.1f, %.1f", x[0], x[1], x[2]) }

const otherPages = "which chips the pages of a command are on is random here"

func runWRR(env *experiment.Env) (r experiment.Result) {
	loads := []load{{High, 0.45, 4, 8}, {Medium, 0.30, 3, 8}, {Low, 0.15, 2, 8}}
	reference := [scenarios][]float64{{837, 690, 456}, {536, 605, 944}, {559, 626, 1251}}
	paper := [scenarios]string{">85, <70, <40", "High still worst, gap smaller", "≈50, ≈60, worst"}
	var got [scenarios][]float64
	r.Model() // the arbiter is the device's: nothing of the server decides
	for s := range scenarios {
		got[s] = onDevice(env, s, 64, loads)
		for i, want := range reference[s] {
			what := fmt.Sprintf("S%d, %s, us", s+1, loads[i].tag)
			near := got[s][i] >= 0.75*want && got[s][i] <= 1.25*want
			r.Claim(what, paper[s], experiment.Num(want)+" ±25 %", experiment.Num(got[s][i]), near, otherPages)
		}
	}
	a, b, c := got[withoutQoS], got[arbiterOnly], got[arbiterAndChips]
	r.Require("S1: High > Medium > Low, us", paper[0], "in order", three(a), a[0] > a[1] && a[1] > a[2])
	r.Claim("S2: High still the worst, us", paper[1], "High > Low", three(b), b[0] > b[2],
		"nearly all that waits is before the arbiter, which already turns the order round")
	r.Require("S3: High < Medium < Low, us", paper[2], "in order", three(c), c[0] < c[1] && c[1] < c[2])
	return r
}

func runTPCC(env *experiment.Env) (r experiment.Result) {
	const inside = 8 // at the chips of a device that has more, Low's pages are before others
	loads := []load{{High, 0.10, 2, 1}, {Medium, 0.15, 2, 1}, {Low, 0.40, 4, 1}}
	b, c := onDevice(env, arbiterOnly, inside, loads), onDevice(env, arbiterAndChips, inside, loads)
	r.Model()
	r.Require("S2: High < Medium < Low, us", "S2 suffices", "in order", three(b), b[0] < b[1] && b[1] < b[2])
	for i, l := range loads {
		ratio := c[i] / b[i]
		r.Claim(fmt.Sprintf("S3/S2, %s", l.tag), "the same", "0.9 to 1.1", experiment.Num(ratio), ratio >= 0.9 && ratio <= 1.1,
			"the few commands that wait at chips are ordered there, too")
	}
	return r
}
