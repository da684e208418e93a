package net

import "lunar/scripts/sim/experiment"

// The decisions of the server's code that experiments rest on.
const (
	// quality is what makes flows of a class with more than its share give way. The stub
	// is DCTCP, DCQCN.
	quality experiment.Decision = "qtcp.Flow.Update: the window by quality"
	// quick is the same for rates.
	quick experiment.Decision = "qrdma.Flow.Update: the rate by quality"
	// weighed is what makes them give way behind a queue that marks all from a length on, or
	// nothing. The stub has all flows alike.
	weighed experiment.Decision = "qtcp.Flow.UpdateWeighed: the window by quality and weight"
	// estimate follows what other traffic leaves. The stub never changes it.
	estimate experiment.Decision = "qtcp.Device.Observe: the shared estimate"
)

// Rule is how a flow is governed.
type Rule uint8

// The rules.
const (
	DCTCP Rule = iota
	D2TCP
	QTCP   // by rate
	Timely // QTCP by latency
	DCQCN
	QRDMA      // by rate
	TimelyRDMA // QRDMA by latency
)

// String is the rule's name.
func (r Rule) String() string {
	return [...]string{DCTCP: "DCTCP", D2TCP: "D2TCP", QTCP: "QTCP", Timely: "QTCP by latency", DCQCN: "DCQCN", QRDMA: "QRDMA", TimelyRDMA: "QRDMA by latency"}[r]
}

// rated reports whether the rule governs a rate and not a window.
func (r Rule) rated() bool { return r >= DCQCN }

// plain is what is left of a rule without quality.
func (r Rule) plain() Rule {
	switch {
	case r.rated():
		return DCQCN
	case r == D2TCP:
		return D2TCP
	}
	return DCTCP
}

// decision is what a rule by quality rests on.
func (r Rule) decision() experiment.Decision {
	if r.rated() {
		return quick
	}
	return quality
}

// ruleOf is the rule that a run has: without quality if a stub decides.
func ruleOf(env *experiment.Env, r Rule) Rule {
	if env.Decides(r.decision()) {
		return r
	}
	return r.plain()
}

// smoothed takes a latency into the smoothed one; 0 is none yet.
func smoothed(latency, last float64) float64 {
	if latency == 0 {
		return last
	}
	return (latency + last) / 2
}
