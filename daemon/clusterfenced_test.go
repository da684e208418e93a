package daemon

import (
	"testing"

	"lunar/internal/cli"
	"lunar/internal/eventually"
)

// TestFencedComesBack: a node that was fenced and did not hang has a volume again as soon as it
// may: it claims nothing by the instance that Ceph refuses.
func TestFencedComesBack(t *testing.T) {
	l := newLab(t, "")
	eventually.Holds(t, "the first node owns the volume, and all know", func() bool {
		return l.owner("n1") == "n1" && l.owner("n2") == "n1" && l.owner("n3") == "n1"
	})
	l.lunar("n1", cli.ExitOK, "cluster", "move", "db", "n2")
	l.lunar("n1", cli.ExitOK, "cluster", "fence", "n2")
	l.lunar("n1", cli.ExitOK, "cluster", "drain", "n2", "--off")
	l.lunar("n1", cli.ExitOK, "cluster", "move", "db", "n2")
}
