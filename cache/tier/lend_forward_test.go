package tier

import (
	"testing"

	"lunar/backstore/backstoretest"
)

// What is lent is counted like any other read, and much of it from another node
// is to be sent by a thread of that node.
func TestLentFromAnotherNode(t *testing.T) {
	f := newForwarders(t, twoNodes, newRAM(t), 2, 8<<10)
	c, closing := f.client(t, 0)
	defer closing()
	there := f.remoteBlock()
	here := (there + 2*64<<10) % (4 * 64 << 10)
	for _, off := range []int64{there, here} {
		c.Write(t, off, backstoretest.Pattern(16<<10, 1))
		c.Read(t, off, 16<<10)
	}
	before, _ := f.cache.Forwarding()
	for _, want := range []struct {
		off  int64
		n    int
		away bool
	}{{there, 16 << 10, true}, {there, 4 << 10, false}, {here, 16 << 10, false}} {
		ref := c.Lane.(*lane).lend(want.off, want.n)
		if ref == nil {
			t.Fatalf("%d bytes at %d were not lent", want.n, want.off)
		}
		if node, away := ref.Node(); away != want.away || away && node != 1 {
			t.Errorf("%d bytes at %d: sent from node %d, %v; expected %v", want.n, want.off, node, away, want.away)
		}
		backstoretest.On(c.Loop, ref.Release)
	}
	after, _ := f.cache.Forwarding()
	forwarded, remote, local := after[0].Forwarded-before[0].Forwarded, after[0].Remote-before[0].Remote, after[0].Local-before[0].Local
	if forwarded != 1 || remote != 1 || local != 1 {
		t.Errorf("%d forwarded, %d of the other node and %d of its own; expected one of each", forwarded, remote, local)
	}
}
