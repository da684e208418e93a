package target

import "lunar/scheduler"

// networkClass is the class of a session's connections: the first of those of its LUNs that
// rules are about.
func (c *sessionState) networkClass() (class NetworkClass) {
	n, found := c.thread.gate.network, false
	if !n.Active() {
		return class
	}
	for _, l := range c.luns {
		if of, ruled := l.queue.Class(); ruled && (!found || of.Above(class.Class)) {
			class.Class, found = of, true
		}
	}
	if !found {
		return NetworkClass{}
	}
	class.DSCP = n.DSCP[class.Class]
	if n.Governor != scheduler.NoGovernor && class.Class != scheduler.Urgent {
		class.Network = n
	}
	return class
}

// classify tells the transports of a session's connections its class.
func (c *sessionState) classify() {
	all := c.networkClass()
	for _, o := range c.conns {
		class := all
		if o.assist != nil { // its packets are not marked, and its transport paces writes by itself
			class.DSCP = 0
		}
		if class.Network == nil && class.DSCP == 0 {
			class = NetworkClass{}
		}
		if o.classed != nil && !o.closed && o.class != class {
			o.class = class
			if err := o.classed.SetClass(class); err != nil {
				o.log.Warn("class of the connection not in force", "err", err)
			}
			if o.assist == nil {
				o.pacing.follow(o, class)
			}
		}
	}
}

// classify does that for all sessions of the thread.
func (th *thread) classify() {
	for c := range th.sessions {
		c.classify()
	}
}

// classes are the classes of the connections of an initiator, or of all, on the thread.
func (th *thread) classes(initiator string) (all []ConnectionClass) {
	for c := range th.sessions {
		for _, o := range c.conns {
			if o.classed == nil || o.closed || o.class == (NetworkClass{}) || initiator != "" && c.session.initiator.Name != initiator {
				continue
			}
			one := ConnectionClass{
				Initiator: c.session.initiator.Name, Target: c.session.target.Name(), Remote: o.remote,
				Class: o.class.Class, DSCP: o.class.DSCP, Governance: o.classed.Governance(),
			}
			if o.assist == nil {
				one.Pacing = o.pacing.told()
			}
			all = append(all, one)
		}
	}
	return all
}
