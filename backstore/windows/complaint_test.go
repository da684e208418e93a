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

// TestMirrorWithoutRoom: a member that is full, and a map that cannot say so, as on one disk that is
// mounted read-only, are told of once, and not in each window; the member is dropped when the map
// can be written.
func TestMirrorWithoutRoom(t *testing.T) {
	a, b, chart := errstore.Wrap(mem(t, crashSize)), errstore.Wrap(mem(t, crashSize)), errstore.Wrap(mem(t, MapSize))
	c, log := mirrorOf(a, b, chart), &eventually.Output{}
	c.Logger = slog.New(slog.NewTextHandler(log, nil))
	m := openWhole(t, c)
	writes := []backstore.Kind{backstore.Write}
	m.gate.RLock()
	full := []*errstore.Store{a, b}[m.other()]
	m.gate.RUnlock()
	full.SetRules(errstore.Rule{Kinds: writes, Err: unix.ENOSPC})
	chart.SetRules(errstore.Rule{Kinds: writes, After: 1, Times: 20, Err: unix.EROFS})
	backstoretest.NewClient(t, m, backstoretest.NewLoop(t, false)).Write(t, 0, backstoretest.Pattern(4096, 1))
	eventually.Says(t, log.String, "a mirror's member has failed: it goes on with the other")
	if n := strings.Count(log.String(), "could not exchange"); n != 1 {
		t.Errorf("found %d lines, expected one:\n%s", n, log)
	}
}
