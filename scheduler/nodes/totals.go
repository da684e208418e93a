package nodes

import "fmt"

// Totals is what a controller tells the nodes that report, once in each period, for whoever looks.
type Totals struct {
	Term     uint64
	Age      int64 // ns since the controller was elected
	Entities int64 // that have a reservation or a limit
	Reserved int64 // tokens/s; what lies inside another reservation is part of that
	Limit    int64 // tokens/s, of all limits, also of those inside others
	Served   int64 // tokens, in the last period
	Missed   int64 // entities whose reservation was not kept in the last period
	Nodes    []NodeTotals
	Silent   []string // nodes that live and do not report
}

// NodeTotals is a node's part.
type NodeTotals struct {
	Node     string
	Reserved int64 // tokens that are left of reservations, in this period
	Served   int64 // tokens, in the last period
	Capacity int64 // tokens/s, of all devices that it uses: one that nodes share counts with each
}

// Append writes the message behind to.
func (t *Totals) Append(to []byte) []byte { return encode(to, IsTotals, t.wire) }

// Parse reads a message of kind IsTotals.
func (t *Totals) Parse(message []byte) error { return decode(message, t.wire) }

func (t *Totals) wire(w *wire) {
	w.uint(&t.Term)
	for _, v := range []*int64{&t.Age, &t.Entities, &t.Reserved, &t.Limit, &t.Served, &t.Missed} {
		w.int(v)
	}
	list(w, &t.Nodes, 4, func(n *NodeTotals) {
		w.text(&n.Node)
		w.int(&n.Reserved)
		w.int(&n.Served)
		w.int(&n.Capacity)
	})
	list(w, &t.Silent, 1, w.text)
}

// Totals is what the last Deal began a period with; age is the controller's, in ns. It is nil if
// that began none.
func (c *Controller) Totals(age int64) *Totals {
	if !c.coord.AtPeriod() {
		return nil
	}
	sums := c.coord.Totals()
	t := &Totals{
		Term: c.config.Term, Age: age, Entities: sums.Entities, Reserved: sums.Reserved, Limit: sums.Limit, Served: sums.Served, Missed: sums.Missed,
		Silent: c.silent(),
	}
	for slot, node := range c.slots {
		if node != "" {
			one := sums.Threads[slot]
			t.Nodes = append(t.Nodes, NodeTotals{node, one.Reserved, one.Served, one.Capacity})
		}
	}
	return t
}

// Totals reads a message of kind IsTotals. It fails for one that is not of the newest controller.
func (n *Node) Totals(message []byte, now int64) (*Totals, error) {
	t := &Totals{}
	if err := t.Parse(message); err != nil {
		return nil, err
	}
	if !n.obeys(t.Term, now) {
		return nil, fmt.Errorf("found totals of term %d, expected term %d", t.Term, n.term)
	}
	return t, nil
}
