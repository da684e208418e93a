package daemon

import (
	"bytes"
	"strings"
	"testing"

	"lunar/internal/cli"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
)

// TestImageSnapshots: volumes of type rbd have the snapshots of their images and clones of them,
// by the same commands as files, with a schedule, and are rolled back with what the cache has.
func TestImageSnapshots(t *testing.T) {
	l, cluster := serveImages(t)
	c := dial(t, l.portal, initiator.Options{Target: "iqn.2026-11.test:t"})
	settle(t, c, 1)
	transfer(t, c, cdb10(0x2a, 0), 1, pattern(1, 1), 0)
	l.has(l.tgtd(cli.ExitOK, "volume", "snapshot", "create", "cached", "db", "--name", "one"), "Snapshot one: cached, db", "held for")
	transfer(t, c, cdb10(0x2a, 0), 1, pattern(1, 2), 0)
	l.has(l.tgtd(cli.ExitOK, "volume", "snapshot", "list", "cached"), "one", "1MiB")
	l.has(l.tgtd(cli.ExitOK, "volume", "snapshot", "clone", "cached", "one", "copy"), "Volume copy: rbd/copy, made in")
	l.has(l.tgtd(cli.ExitFailure, "volume", "snapshot", "clone", "cached", "one", "more"), "found an image rbd/more, expected a name that nothing has")
	l.has(l.tgtd(cli.ExitOK, "volume", "snapshot", "clone", "cached", "one", "seen", "--read-only"), "Volume seen: rbd/seen, made in")
	l.tgtd(cli.ExitOK, "lun", "create", "iqn.2026-11.test:t", "3", "volume=copy")
	l.tgtd(cli.ExitOK, "lun", "create", "iqn.2026-11.test:t", "4", "volume=seen")
	other := dial(t, l.portal, initiator.Options{Target: "iqn.2026-11.test:t", Initiator: "iqn.2026-11.test:other"})
	for lun, round := range map[uint64]int{1: 2, 3: 1, 4: 1} {
		settle(t, other, lun)
		if got := transfer(t, other, cdb10(0x28, 0), lun, nil, 64<<10); !bytes.Equal(got, pattern(1, round)) {
			t.Errorf("LUN %d: found %.40q, expected round %d", lun, got, round)
		}
	}
	l.has(l.tgtd(cli.ExitFailure, "volume", "snapshot", "rollback", "cached", "one"), "--force")
	attentions(t, c, 1) // of the LUN that is new
	l.has(l.tgtd(cli.ExitOK, "volume", "snapshot", "rollback", "cached", "one", "--force"), "What it held before is snapshot before-")
	l.sense(c, 1, 0x28, 0)
	if got := transfer(t, c, cdb10(0x28, 0), 1, nil, 64<<10); !bytes.Equal(got, pattern(1, 1)) {
		t.Errorf("found %.40q, expected what the snapshot has", got)
	}
	transfer(t, c, cdb10(0x2a, 0), 1, pattern(1, 3), 0)
	l.has(l.tgtd(cli.ExitOK, "volume", "snapshot", "list", "cached"), "one", "before-")
	if v := l.volume(t, "cached"); v.Health.State != "ok" {
		t.Errorf("found %+v", v.Health)
	}
	l.tgtd(cli.ExitOK, "volume", "snapshot", "delete", "cached", "one")
	l.has(l.tgtd(cli.ExitFailure, "volume", "snapshot", "delete", "cached", "one"), "no snapshot of this name")
	l.tgtd(cli.ExitOK, "volume", "set", "cached", "snapshots.every=24h", "snapshots.keep=2")
	eventually.Holds(t, "the schedule is kept", func() bool {
		s := l.volume(t, "cached").Snapshots
		return s != nil && s.Count == 2 && s.Due != nil && s.Failed == ""
	})
	if text := l.tgtd(cli.ExitOK, "volume", "snapshot", "list", "cached"); !strings.Contains(text, "auto-") {
		t.Errorf("found %s", text)
	}
	if n := cluster.Noted("rbd/cached")["lunar-cloning"]; n != "" {
		t.Errorf("found note %q of a clone that is in use", n)
	}
}
