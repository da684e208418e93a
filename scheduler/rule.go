package scheduler

import "lunar/scheduler/pshift"

// Rate is an amount per second in two units; 0 is none.
type Rate struct {
	IOPS  int64 // tokens/s: commands, large ones counted by Cost
	Bytes int64 // bytes/s
}

// Rule is one line of the QoS configuration: whom it is about and what they
// get. A rule with a Group is about all members together. A rule with
// Initiators is about each initiator that matches, over all its sessions,
// connections and logical units. With a Target or a LUN it is about each
// (initiator, logical unit) that matches.
type Rule struct {
	Name        string
	Initiators  []string // patterns of initiator names
	Group       string   // name of a Group
	Target      string   // pattern of target names; empty is all
	LUN         *uint64  // nil is all
	Reservation Rate     // promised
	Limit       Rate     // not to be exceeded
	Burst       Rate     // units above the limit that may pass at once after a pause; 0 is 10 ms of it
	Weight      int64    // share of what is left; 0 is 1
	Class       Class
	GroupNumber bool // commands may name another class (Network.Groups)
}

// Group names initiators that rules are about as one.
type Group struct {
	Name       string
	Initiators []string // patterns
}

// Cost says how many tokens a command costs: one per Unit bytes, at least one.
type Cost struct {
	Unit         int64 // bytes; 0 is 4096
	WritePercent int64 // what a write costs beside a read; 0 is 100
}

// Of is the cost of a command that moves bytes.
func (c Cost) Of(bytes int64, write bool) int64 {
	unit := c.unit()
	cost := bytes / unit
	if write && c.WritePercent > 0 {
		cost = cost * c.WritePercent / 100
	}
	return max(1, cost)
}

func (c Cost) unit() int64 {
	if c.Unit == 0 {
		return 4096
	}
	return c.Unit
}

// Tokens is a reservation in tokens/s: the larger of its two units.
func (c Cost) Tokens(r Rate) int64 { return max(r.IOPS, r.Bytes/c.unit()) }

// ceiling is a limit in tokens/s: the smaller of its two units; Unlimited is
// none. With it pShift divides limits; it does not enforce them.
func (c Cost) ceiling(r Rate) int64 {
	most := int64(pshift.Unlimited)
	if r.IOPS > 0 {
		most = r.IOPS
	}
	if r.Bytes > 0 {
		most = min(most, max(1, r.Bytes/c.unit()))
	}
	return most
}

// Level is where an entity stands in the hierarchy.
type Level uint8

// The levels, from the outside in.
const (
	GroupLevel     Level = iota
	InitiatorLevel       // over all sessions, connections and logical units
	NexusLevel           // one initiator's use of one logical unit
	levels
)

// String is the level in words.
func (l Level) String() string { return [...]string{"group", "initiator", "nexus"}[l] }

// level is the level of the entities that a rule makes.
func (r *Rule) level() Level {
	switch {
	case r.Target != "" || r.LUN != nil:
		return NexusLevel
	case r.Group != "":
		return GroupLevel
	}
	return InitiatorLevel
}

// Class is the service class of a queue. Classes share what is left after
// reservations by ClassWeights; Urgent goes before everything.
type Class uint8

// The classes.
const (
	Medium Class = iota
	High
	Low
	Urgent
	classes // how many there are
)

// ClassWeights are the shares of the classes High, Medium and Low.
var ClassWeights = [3]int64{3, 2, 1}
