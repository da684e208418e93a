package net

import (
	"lunar/scheduler/qtcp"
	"lunar/scripts/sim/experiment"
	"lunar/scripts/sim/kernel"
)

// The experiment on latencies: messages of 2 MB on the mean, whose classes should take at
// most 5, 6 and 8 ms, on a link that is busy for 80 % of the time. The thesis does not say
// how fast the link is; at 20 Gb/s QTCP by rate misses as many targets as there.
const (
	messageBytes  = 2e6
	messageLoad   = 0.8
	latencyLink   = 20 // Gb/s
	latencyTrip   = 25 // us
	latencySecond = 1e6
)

var latencyTargets = [qtcp.Classes]float64{5000, 6000, 8000} // us

// mix is what the classes have of the traffic.
type mix [qtcp.Classes]float64

var (
	normal   = mix{0.1, 0.2, 0.7}
	stressed = mix{1. / 3, 1. / 3, 1. / 3}
)

// missesOf returns the share of messages in % that miss their target, by class.
func missesOf(env *experiment.Env, rule Rule, m mix) (missed [qtcp.Classes]float64) {
	seconds := 100.0
	if env.Reduced {
		seconds = 20
	}
	const mean = messageBytes / Payload
	var flows []*slotFlow
	for c, share := range m {
		flows = append(flows, &slotFlow{
			rule: ruleOf(env, rule), class: qtcp.Class(c), offered: latencyLink * gigabit,
			work: &backlog{
				target: latencyTargets[c], mean: mean, gap: mean / (messageLoad * share * latencyLink * gigabit),
				r: kernel.NewRand(env.Seed, uint64(c)),
			},
		})
	}
	s := newSlots(latencyLink, latencyTrip, flows...)
	s.fixed = true
	for s.now < seconds*latencySecond {
		s.step()
	}
	for c, f := range flows {
		missed[c] = f.work.misses()
	}
	return missed
}

const bySlack = "smoothed latency tells a class that it is late when its messages have missed, and until then all with slack make way for nobody"

func runLatency(env *experiment.Env) (r experiment.Result) {
	missed := map[Rule][qtcp.Classes]float64{}
	for _, rule := range []Rule{DCTCP, D2TCP, QTCP, Timely} {
		missed[rule] = missesOf(env, rule, stressed)
		r.Note(rule.String()+", stressed: misses in %", "", triple(missedOf(missed[rule])), "")
		r.Note(rule.String()+", normal: misses in %", map[Rule]string{DCTCP: "5-8", QTCP: "≈0"}[rule], triple(missedOf(missesOf(env, rule, normal))), "")
	}
	high := func(rule Rule) float64 { return missed[rule][qtcp.High] }
	r.Model()
	r.Claim("DCTCP, stressed: misses of High in %", "30-65", "30 to 65", experiment.Num(high(DCTCP)), high(DCTCP) >= 30 && high(DCTCP) <= 65,
		"how fast the link is the thesis does not say; a slower one comes to 30 and takes QTCP beyond 18")
	r.Paper(quality)
	r.Within("QTCP by rate, stressed: misses of High in %", "15-18", high(QTCP), 14, 19)
	r.Require("QTCP by rate < D2TCP < DCTCP for High, stressed", "15-18, 35, 30-65", "in order", order(high(QTCP), high(D2TCP), high(DCTCP)),
		high(QTCP) < high(D2TCP) && high(D2TCP) < high(DCTCP))
	ratio := high(QTCP) / high(DCTCP)
	r.Claim("QTCP by rate/DCTCP for High, stressed", "≤0.5", "≤0.5", experiment.Num(ratio), ratio <= 0.5,
		"the link is left idle by nobody, so that High gains only what Low loses")
	r.Claim("QTCP by latency < D2TCP < DCTCP for High, stressed", "15-18, 35, 30-65", "in order", order(high(Timely), high(D2TCP), high(DCTCP)),
		high(Timely) < high(D2TCP) && high(D2TCP) < high(DCTCP), bySlack)
	return r
}

func runRateLatency(env *experiment.Env) (r experiment.Result) {
	plain, rated, windowed := missesOf(env, DCQCN, stressed)[qtcp.High], missesOf(env, QRDMA, stressed)[qtcp.High], missesOf(env, QTCP, stressed)[qtcp.High]
	fewer := 100 * (1 - rated/plain)
	r.Paper(quick)
	r.Within("QRDMA by rate: fewer misses of High than DCQCN in %", "43-80", fewer, 43, 80)
	r.Model()
	r.Require("QRDMA misses more than QTCP for High", "more", "in order", order(windowed, rated), rated > windowed)
	timely := missesOf(env, TimelyRDMA, stressed)[qtcp.High]
	fewer = 100 * (1 - timely/plain)
	r.Paper(quick)
	r.Claim("QRDMA by latency: fewer misses of High than DCQCN in %", "43-80", "43 to 80", experiment.Num(fewer), fewer >= 43 && fewer <= 80, bySlack)
	return r
}

func missedOf(m [qtcp.Classes]float64) []float64 { return m[:] }

func order(x ...float64) string {
	text := experiment.Num(x[0])
	for _, v := range x[1:] {
		text += ", " + experiment.Num(v)
	}
	return text
}
