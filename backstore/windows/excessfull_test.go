package windows

import (
	"log/slog"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/errstore"
	"lunar/internal/eventually"
)

// TestExcessFullSlowDevice: a slow device without room, as a sparse file on a full disk, is told of
// once, however often it is tried to write back, and all is written back when there is room.
func TestExcessFullSlowDevice(t *testing.T) {
	slow := errstore.Wrap(memory(t, backstoretest.Size, true))
	c, log := excessOf(slow, memory(t, ExcessLeast, true)), &eventually.Output{}
	c.Large, c.Logger = 64<<10, slog.New(slog.NewTextHandler(log, nil))
	slow.SetRules(errstore.Rule{Kinds: []backstore.Kind{backstore.Write}, Err: unix.ENOSPC, Times: 3})
	x := openExcess(t, c)
	client := backstoretest.NewClient(t, x, backstoretest.NewLoop(t, true))
	client.Must(t, backstore.Op{Kind: backstore.Write, Off: 8192, Data: backstoretest.Pattern(4096, 1)})
	eventually.Says(t, log.String, "could not be written back", unix.ENOSPC.Error())
	eventually.Holds(t, "all is written back", func() bool { return x.Empty() && x.Troubles() == nil })
	if err := x.Close(); err != nil {
		t.Error(err)
	}
	for _, what := range []string{"could not be written back", "written back again"} {
		if n := strings.Count(log.String(), what); n != 1 {
			t.Errorf("found %d lines with %q, expected one:\n%s", n, what, log)
		}
	}
}
