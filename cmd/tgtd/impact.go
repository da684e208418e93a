package main

import (
	"fmt"
	"slices"
	"strings"

	"lunar/conf"
	"lunar/internal/control"
	"lunar/target"
)

// allowances are the flags that allow what is destructive.
type allowances struct {
	Yes         bool     `help:"Also do what hits sessions, or leaves data behind."`
	AllowShrink []string `sep:"none" placeholder:"VOLUME" help:"Also cut this volume, which loses what is behind its new end; may be repeated."`
}

func (w allowances) allowed() conf.Allowed { return conf.Allowed{Yes: w.Yes, Shrink: w.AllowShrink} }

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

// more are the allowances with what was refused for the lack of.
func (w allowances) more(needs, volume string) allowances {
	switch {
	case needs == control.NeedsYes:
		w.Yes = true
	case needs == control.NeedsShrink && !slices.Contains(w.AllowShrink, volume):
		w.AllowShrink = append(slices.Clone(w.AllowShrink), volume)
	}
	return w
}

// moreFor is more for the place of a reason; ok is false if it does not ask for any.
func (w allowances) moreFor(r control.Reason) (with allowances, ok bool) {
	needs, volume, _ := strings.Cut(r.Place, ".")
	ok = needs == control.NeedsYes || needs == control.NeedsShrink && volume != ""
	return w.more(needs, volume), ok
}

// command is a command line of tgtd with these allowances.
func (w allowances) command(words ...string) string {
	line := append([]string{"tgtd"}, words...)
	if w.Yes {
		line = append(line, "--yes")
	}
	for _, v := range w.AllowShrink {
		line = append(line, "--allow-shrink", v)
	}
	for i := range line {
		line[i] = quoted(line[i])
	}
	return strings.Join(line, " ")
}

// quoted is a word for a shell.
func quoted(word string) string {
	if word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:,@%+=") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// facts are what a change of the running configuration is judged by.
func (a *applier) facts() conf.Facts {
	f := conf.Facts{Sizes: map[string]int64{}, Stuck: map[string]int64{}}
	for name, lu := range a.daemon.assembly.units {
		f.Sizes[name] = lu.Store().Info().Size
	}
	if a.daemon.cache != nil {
		cached := a.daemon.cache.Snapshot()
		for name := range a.daemon.assembly.units {
			if v, ok := cached.Volumes[a.daemon.health.cached(name)]; ok && !v.FailingSince.IsZero() {
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
