package nest

import (
	"fmt"

	"lunar/scripts/sim/experiment"
	"lunar/scripts/sim/net"
)

// writers is three hosts that write to one server, 64 KiB at a time, and one more that
// writes to its memory, if urgent.
type writers struct {
	rule    net.Rule
	offered [3]float64 // Gb/s
	network [3]Tag     // the classes that connections of High, Medium and Low have
	urgent  float64    // Gb/s
}

const (
	writeBytes       = 64 << 10
	writeOutstanding = 64
)

// fast is a device that is faster than the link, by a little.
var fast = Flash{Chips: 64, PageBytes: 4096, Write: 18 * net.Microsecond, Read: 18 * net.Microsecond, Inside: 64, Arbiter: true}

// run returns what the sources measured: High, Medium, Low, and Urgent if there is one.
func (w writers) run(env *experiment.Env) []*source {
	x := newSite(env, 5, w.rule)
	d := byTag{NewSCM(&x.kernel, 16, memoryAccess, 0), x.ssd(fast)}
	s := x.fabric.NewServer(4, d, 0)
	for c, tag := range tags {
		path := x.fabric.Connect(tag, x.as(w.network[c]), c, s)
		x.add(tag, w.offered[c], writeBytes, writeOutstanding, []*Path{path}, always(true), always(int64(writeBytes)))
	}
	if w.urgent > 0 {
		path := x.fabric.Connect(Urgent, x.transport, 3, s)
		x.add(Urgent, w.urgent, command, 0, []*Path{path}, always(true), always(int64(command)))
	}
	settle, length := 50*net.Millisecond, 500*net.Millisecond
	if env.Reduced {
		settle, length = 20*net.Millisecond, 30*net.Millisecond
	}
	x.run(settle, length)
	return x.sources
}

func p99(sources []*source) (us []float64) {
	for _, s := range sources {
		us = append(us, s.percentile(99))
	}
	return us
}

var agreed = [3]Tag{High, Medium, Low}

func runTail(env *experiment.Env) (r experiment.Result) {
	each := [3]float64{40, 40, 40}
	against := p99(writers{ruleOf(env), each, [3]Tag{Low, Medium, High}, 0}.run(env))
	together := writers{ruleOf(env), each, agreed, 0}.run(env)
	with := p99(together)
	plain := p99(writers{net.DCTCP, each, agreed, 0}.run(env))
	r.Paper(quality)
	r.Require("storage and network disagree: App1, Low in the network, is the worst, p99 in us", "App1 worst", "App1 > 1.25 others", three(against),
		against[0] > 1.25*max(against[1], against[2]))
	r.Require("agree, QTCP: High < Medium < Low, p99 in us", "60, 100, 700-1500", "in order", three(with), with[0] < with[1] && with[1] < with[2])
	for c := range 2 {
		ratio := with[c] / with[c+1]
		r.Claim(fmt.Sprintf("agree, QTCP: %s/%s", tags[c], tags[c+1]), "half", "0.35 to 0.65", experiment.Num(ratio), ratio >= 0.35 && ratio <= 0.65, depth)
	}
	r.Claim("agree, QTCP: Low, p99 in us", "700-1500", "700 to 1500", experiment.Num(with[2]), with[2] >= 700 && with[2] <= 1500, depth)
	r.Model()
	r.Claim("DCTCP: High/Medium", "1.2", ">1", experiment.Num(plain[0]/plain[1]), plain[0] > plain[1],
		"connections are alike to DCTCP, and the device's arbiter serves High first")
	return r
}

var depth = fmt.Sprintf("%d writes of 64 KiB are outstanding at most, and the thesis does not say how many", writeOutstanding)

func runMix(env *experiment.Env) (r experiment.Result) {
	offered := [3]float64{30, 60, 90}
	plain := p99(writers{net.DCTCP, offered, agreed, 2}.run(env))
	with := p99(writers{ruleOf(env), offered, agreed, 2}.run(env))
	r.Model()
	r.Claim("DCTCP: Medium worse than Low, p99 in us", "worse", "Medium > Low", three(plain), plain[1] > plain[2],
		"both have more to write than a third of the link, and as much outstanding")
	r.Paper(quality)
	r.Require("QTCP: High < Medium < Low, p99 in us", "in order", "in order", three(with), with[0] < with[1] && with[1] < with[2] && with[1] < 0.75*with[2])
	r.Model()
	r.Require("QTCP: Urgent < High, p99 in us", "in order", "in order", fmt.Sprintf("%.1f, %.1f", with[3], with[0]), with[3] < with[0])
	return r
}
