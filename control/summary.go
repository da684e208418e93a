package control

import (
	"cmp"
	"fmt"
	"strings"
)

// Summary is a server's state in one word, that of its worst volume or of what else is
// wrong with it (HealthOK and so on), and in one line for people: what is wrong first,
// then what is worth knowing.
func (s *Status) Summary() (state, line string) {
	state = HealthOK
	var wrong, known []string
	for i := range s.Volumes {
		v := &s.Volumes[i]
		if h := v.Health.State; h == HealthDegraded || h == HealthFailed {
			state = worse(state, h)
			wrong = append(wrong, "volume "+v.Name+" "+h)
		}
		if v.Frozen != nil {
			known = append(known, "volume "+v.Name+" is frozen")
		}
	}
	if s.Cache != nil && s.Cache.SegmentLost {
		state, wrong = worse(state, HealthDegraded), append(wrong, "the cache's segment was removed")
	}
	if s.RDMA != nil && s.RDMA.Off != "" {
		state, wrong = worse(state, HealthDegraded), append(wrong, "iSER is off")
	}
	if c := s.Cluster; c != nil {
		troubles, notes := c.words()
		if len(troubles) > 0 {
			state = worse(state, HealthDegraded)
		}
		wrong, known = append(wrong, troubles...), append(known, notes...)
	}
	for _, name := range s.Closing {
		known = append(known, "volume "+name+" is still being closed")
	}
	known = append(known, few(len(s.Warnings), "warning")...)
	for kinds, i := s.driftKinds(), 0; i < len(kinds); i++ {
		known = append(known, few(kinds[i].n, kinds[i].noun+" that the configuration file does not have")...)
	}
	line = strings.Join(shortened(wrong), ", ")
	if line != "" {
		line += "; "
	}
	line += cmp.Or(strings.Join(few(len(s.Volumes), "volume"), ""), "no volume") + ", " + cmp.Or(strings.Join(few(len(s.Sessions), "session"), ""), "no session")
	if len(known) > 0 {
		line += "; " + strings.Join(shortened(known), ", ")
	}
	return state, state + ": " + line
}

// nounsOf are what drift of a kind is called, in the order in which it is told.
var nounsOf = []struct{ kind, noun string }{
	{"drain", "drain"}, {"access", "access state"}, {"qos", "QoS change"}, {"configuration", "other difference"},
}

type driftKind struct {
	noun string
	n    int
}

func (s *Status) driftKinds() (kinds []driftKind) {
	for _, of := range nounsOf {
		n := 0
		for _, d := range s.Drift {
			if d.Kind == of.kind {
				n++
			}
		}
		kinds = append(kinds, driftKind{of.noun, n})
	}
	return kinds
}

func worse(a, b string) string {
	if a == HealthFailed || b == HealthFailed {
		return HealthFailed
	}
	return HealthDegraded
}

// few is a number of things in words; nothing for none.
func few(n int, noun string) []string {
	first, rest, more := strings.Cut(noun, " that ")
	switch {
	case n == 0:
		return nil
	case n > 1:
		first += "s"
	}
	if more {
		first += " that " + rest
	}
	return []string{fmt.Sprintf("%d %s", n, first)}
}

// mostTold is how many things a line tells; the page has the rest.
const mostTold = 4

func shortened(all []string) []string {
	if len(all) <= mostTold {
		return all
	}
	return append(append([]string{}, all[:mostTold-1]...), fmt.Sprintf("and %d more", len(all)-mostTold+1))
}
