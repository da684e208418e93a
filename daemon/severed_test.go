package daemon

import (
	"strings"
	"testing"

	"lunar/internal/cli"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
)

// TestClusterSevered: a command that was relayed, and whose answer is lost with the link, ends when
// its owner was asked by etcd to end it, while no link comes back and nobody else owns the volume.
func TestClusterSevered(t *testing.T) {
	l := newLab(t, "")
	eventually.Holds(t, "the first node owns the volume, and all know", func() bool {
		return l.owner("n1") == "n1" && l.owner("n2") == "n1" && l.owner("n3") == "n1"
	})
	c := dial(t, l.nodes["n2"].portal, initiator.Options{Target: "iqn.2026-11.test:t"})
	write := func() (*initiator.Result, error) { return c.Command(cdb10Of(0x2a, 1), 0, make([]byte, 512), 0) }
	eventually.Holds(t, "the second node relays", func() bool {
		res, err := write()
		return err == nil && res.Status == 0
	})
	l.ceph.Away(true)
	type outcome struct {
		res *initiator.Result
		err error
	}
	came := make(chan outcome, 1)
	go func() {
		res, err := write()
		came <- outcome{res, err}
	}()
	eventually.Holds(t, "the owner has the command", func() bool {
		view := l.cluster("n1")
		n := seen(&view, "n2")
		return n.Link != nil && n.Link.Serving > 0
	})
	l.wires.Cut("n1", "n2", true)
	l.wires.Cut("n2", "n1", true)
	l.ceph.Away(false)
	o := <-came
	if o.err != nil {
		t.Fatal(o.err)
	}
	if key, asc, ascq := o.res.SenseKey(); [3]byte{key, asc, ascq} != [3]byte{2, 4, 0x0a} {
		t.Errorf("found status %#x, sense %x, expected that it is in transition", o.res.Status, o.res.Sense)
	}
	eventually.Holds(t, "the second node has asked for it", func() bool {
		return strings.Contains(l.nodes["n2"].log.String(), "another node has ended what was relayed to it, for want of a link")
	})
	if said := l.lunar("n3", cli.ExitOK, "cluster", "status"); l.owner("n3") != "n1" {
		t.Errorf("the volume has moved: %s", said)
	}
}
