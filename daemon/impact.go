package daemon

import (
	"fmt"

	"lunar/conf"
	"lunar/control"
	"lunar/target"
)

// refusal are the destructive impacts that are not allowed; nil: there are none.
func refusal(what string, impacts []conf.Impact, allowed conf.Allowed) error {
	r := &control.Refusal{What: what, State: true}
	for i := range impacts {
		if impact := &impacts[i]; !allowed.Permits(impact) {
			place := control.NeedsYes
			if impact.Shrink != "" {
				place = control.NeedsShrink + "." + impact.Shrink
			}
			r.Reasons = append(r.Reasons, control.Reason{Place: place, Text: impact.String()})
		}
	}
	if r.Reasons == nil {
		return nil
	}
	return r
}

// impactsOf says of impacts what the control API does.
func impactsOf(impacts []conf.Impact, allowed conf.Allowed) []control.Impact {
	out := []control.Impact{}
	for i := range impacts {
		one := &impacts[i]
		c := control.Impact{Severity: one.Severity.String(), Key: one.Key, What: one.What, Sessions: []string{}, Volume: one.Shrink, Permitted: allowed.Permits(one)}
		c.Sessions = append(c.Sessions, one.Sessions...)
		switch {
		case one.Shrink != "":
			c.Needs = control.NeedsShrink
		case one.Severity == conf.Destructive:
			c.Needs = control.NeedsYes
		}
		out = append(out, c)
	}
	return out
}

// facts are what a change of the running configuration is judged by.
func (a *applier) facts() conf.Facts {
	f := conf.Facts{Sizes: map[string]int64{}, Stuck: map[string]int64{}, Dirty: map[string]int64{}}
	for name, open := range a.daemon.assembly.Open {
		f.Sizes[name] = open.Slot.Info().Size
	}
	if a.daemon.Cache != nil {
		cached := a.daemon.Cache.Snapshot()
		for name := range a.daemon.assembly.Open {
			v := cached.Volumes[a.daemon.Health.Cached(name)]
			if f.Dirty[name] = v.Dirty; !v.FailingSince.IsZero() {
				f.Stuck[name] = v.Dirty
			}
		}
	}
	for _, n := range a.daemon.Sessions() {
		if n.Target != "" {
			f.Uses = append(f.Uses, useOf(&n))
		}
	}
	return f
}

func useOf(n *target.SessionStats) conf.Use {
	u := conf.Use{
		Name:      fmt.Sprintf("%d of %s from %v", n.TSIH, n.Initiator, n.Remote),
		Initiator: n.Initiator, Target: n.Target, Address: n.Remote.Addr(), Portal: n.Local, ISER: n.Transport == "iser",
		Proven: conf.User{Group: n.Proof.Group, Name: n.Proof.User},
	}
	for _, l := range n.LUNs {
		u.LUNs = append(u.LUNs, conf.LUN{LUN: int(l.LUN), Volume: l.LU.Name(), ReadOnly: l.ReadOnly})
	}
	return u
}
