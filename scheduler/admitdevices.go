package scheduler

import (
	"slices"

	"lunar/scheduler/haechi"
	"lunar/scheduler/pshift"
)

// Placed is a flow and the name of the device that its logical unit is on.
type Placed struct {
	Flow
	Device string
}

// Claim is what an entity reserves that nothing inside it does, and the devices
// any of which may have to serve it.
type Claim struct {
	Rule    *Rule
	Tokens  int64 // per second
	Devices []string
}

// Claims are what flows reserve. An entity counts once; what lies inside a
// reserved group or initiator counts for this one, too.
func (p *Policy) Claims(flows []Placed) (claims []Claim) {
	s := newReservations(p, flows)
	for i := range s.names {
		if s.rule[i] != nil && s.own[i] > 0 {
			claims = append(claims, Claim{Rule: s.rule[i], Tokens: max(0, s.own[i]-s.inner[i]), Devices: s.on[i]})
		}
	}
	return claims
}

// Admit tests the claims of flows against what devices can do, in tokens per
// second, for a period of one second; 0, or a device that is not named, is not
// known and taken for enough. A claim on several devices may be served by any of
// them: it is refused if however it is divided some have more than they can do.
// The error is an *AdmissionError that names these.
func (p *Policy) Admit(flows []Placed, capacities map[string]int64) error {
	var known []string
	var claims []Claim
	for _, c := range p.Claims(flows) {
		if slices.ContainsFunc(c.Devices, func(d string) bool { return capacities[d] == 0 }) {
			continue
		}
		claims = append(claims, c)
		for _, d := range c.Devices {
			if !slices.Contains(known, d) {
				known = append(known, d)
			}
		}
	}
	slices.Sort(known)
	at := newInstanceOf(claims, known, capacities)
	at.Shift(pshift.Options{})
	return overload(at, known)
}

// newInstanceOf is pShift's problem of which claim goes to which device. All
// claims are served, by any of their devices.
func newInstanceOf(claims []Claim, devices []string, capacities map[string]int64) *pshift.Instance {
	at, budget := pshift.NewInstance(len(claims), len(devices)), make([]int64, len(claims))
	for j, d := range devices {
		at.Capacity[j] = capacities[d]
	}
	for i, c := range claims {
		budget[i] = c.Tokens
		for _, d := range c.Devices {
			at.Demand[i*len(devices)+slices.Index(devices, d)] = c.Tokens
		}
	}
	at.Allocate(budget)
	return at
}

// overload returns the error of devices that have more than they can do after
// Shift, with those that what they have could go to, which are full.
func overload(at *pshift.Instance, devices []string) error {
	e := &haechi.AdmissionError{}
	for j, over := range at.Overloaded() {
		if over {
			e.Devices = append(e.Devices, devices[j])
			e.Asked += at.Total(j)
			e.Available += at.Capacity[j]
		}
	}
	if e.Devices == nil {
		return nil
	}
	return e
}
