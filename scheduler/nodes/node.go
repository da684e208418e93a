package nodes

import (
	"fmt"

	"lunar/scheduler"
)

// remembered is for how long, in ns, a node obeys no controller of an earlier term than the
// last one. Terms grow for ever, unless a cluster's state is made anew.
const remembered = 10 * period

// Node is what a node tells the controller. One owner calls it.
type Node struct {
	// Shared says which devices other nodes use, too.
	Shared func(device string) bool

	term      uint64
	obeyed    int64 // when a controller of that term was heard of last
	number    uint64
	answered  [2]int64 // when report number was made, and the one before
	told, now scheduler.GateReport
}

// obeys reports whether a controller of a term is the newest.
func (n *Node) obeys(term uint64, now int64) bool {
	if term < n.term && now-n.obeyed < remembered {
		return false
	}
	if term != n.term {
		n.term, n.number = term, 0
	}
	n.obeyed = now
	return true
}

// Answer answers a message of kind IsAsk; report fills what the node's coordinator has to
// tell.
func (n *Node) Answer(message []byte, now int64, report func(*scheduler.GateReport)) ([]byte, error) {
	var a Ask
	if err := a.Parse(message); err != nil {
		return nil, err
	}
	if !n.obeys(a.Term, now) {
		a.Term = n.term
		return encode(nil, IsSuperseded, a.wire), nil
	}
	report(&n.now)
	was := &n.told
	if a.Base == 0 || a.Base != n.number {
		a.Base, was = 0, &scheduler.GateReport{}
	}
	r := diff(was, &n.now, n.Shared)
	if a.Base == 0 {
		r.begin()
	}
	n.number++
	n.answered = [2]int64{now, n.answered[0]}
	r.Number, r.Base = n.number, a.Base
	n.told, n.now = n.now, n.told
	return r.Append(nil), nil
}

// Grant reads a message of kind IsGrant. It fails for one that does not follow the last
// report or the one before, follows it so late that the controller has given the node up, as when
// the node stood still, or is not of the newest controller: it must not be obeyed.
func (n *Node) Grant(message []byte, now int64) (*scheduler.NodeGrant, error) {
	g := &Grant{}
	if err := g.Parse(message); err != nil {
		return nil, err
	}
	if late := n.number - g.Report; g.Term != n.term || late > 1 || !n.obeys(g.Term, now) {
		return nil, fmt.Errorf("found a grant of term %d for report %d, expected term %d and report %d", g.Term, g.Report, n.term, n.number)
	}
	if age := now - n.answered[n.number-g.Report]; age > lasts {
		return nil, fmt.Errorf("found a grant for a report of %d ms ago, expected %d ms at most", age/1e6, int64(lasts/1e6))
	}
	g.Behind = int(n.number - g.Report)
	g.Lasts -= now - n.answered[g.Behind] // the controller counts from when it has heard the report
	return &g.NodeGrant, checkGrant(&g.NodeGrant)
}
