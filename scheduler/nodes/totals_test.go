package nodes

import "testing"

// TestTotals: once in each period a controller tells what all nodes have together, and a node
// hears no earlier controller.
func TestTotals(t *testing.T) {
	b := newLab(t, 2)
	var told []*Totals
	for range 3 * intervals {
		b.interval(map[string]int64{"n0": 300, "n1": 100})
		if sums := b.c.Totals(int64(len(told))); sums != nil {
			told = append(told, sums)
		}
	}
	if len(told) != 3 {
		t.Fatalf("found totals %d times in three periods, expected three", len(told))
	}
	last := told[2]
	if last.Term != 1 || last.Age != 2 || last.Entities != 1 || last.Reserved != reserved || last.Limit != limited || len(last.Silent) != 0 {
		t.Errorf("found %+v", last)
	}
	sum := int64(0)
	for _, n := range last.Nodes {
		sum += n.Served
	}
	if len(last.Nodes) != 2 || last.Served != sum || last.Served < limited/2 || last.Served > limited || last.Nodes[0].Served <= last.Nodes[1].Served {
		t.Errorf("found %+v, expected what two nodes have served of what they were asked for", last)
	}
	node := &b.nodes["n0"].node
	for term, obeyed := range map[uint64]bool{1: true, 0: false} {
		last.Term = term
		if got, err := node.Totals(last.Append(nil), b.now); (err == nil) != obeyed {
			t.Errorf("term %d: found %+v, %v", term, got, err)
		}
	}
	b.living = append(b.living, "n9")
	b.nodes["n9"], b.cut["n9"] = newLocal(3), true
	for b.interval(nil); !b.c.coord.AtPeriod(); b.interval(nil) {
	}
	if sums := b.c.Totals(0); len(sums.Silent) != 1 || sums.Silent[0] != "n9" || len(sums.Nodes) != 2 {
		t.Errorf("found %+v, expected a silent node", sums)
	}
}
