package daemon

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lunar/internal/cli"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
)

// TestHealth: a volume whose file was cut or deleted is not told to be well, by status,
// metrics or log, whether or not somebody reads there.
func TestHealth(t *testing.T) {
	l := serveLive(t, strings.ReplaceAll(liveConfig, "file, size: 1MiB", "file, size: 3MiB"))
	l.has(l.metrics(), `lunar_volume_health{volume="file"} 0`, `lunar_volume_health{volume="ram"} 0`)
	path := filepath.Join(l.dir, "file")
	if err := os.Truncate(path, 1<<20); err != nil {
		t.Fatal(err)
	}
	eventually.Says(t, l.log.String, `level=ERROR msg="health of a volume" volume=file state=failed reason=`, "has 1048576 bytes, expected 3145728")
	l.has(l.tgtd(cli.ExitOK, "status"), "FAILED since ", "has 1048576 bytes, expected 3145728")
	l.has(l.tgtd(cli.ExitOK, "status", "--json"), `"health":{"state":"failed","troubles":[{"state":"failed","what":"`, `"health":{"state":"ok","troubles":[]}`)
	l.has(l.metrics(), `lunar_volume_health{volume="file"} 2`, `lunar_volume_health{volume="ram"} 0`)
	if err := os.Truncate(path, 3<<20); err != nil {
		t.Fatal(err)
	}
	eventually.Says(t, l.log.String, `level=INFO msg="health of a volume" volume=file state=ok`)

	if err := os.Truncate(path, 1<<20); err != nil {
		t.Fatal(err)
	}
	c := dial(t, l.portal, initiator.Options{Target: "iqn.2026-11.test:t", CHAP: chap("the first secret")})
	settle(t, c, 0)
	if r, err := c.Command(cdb10(0x28, 4000), 0, nil, 64<<10); err != nil || r.Status != initiator.StatusCheckCondition {
		t.Fatalf("found %+v, %v, expected an error behind the end", r, err)
	}
	l.has(l.tgtd(cli.ExitOK, "status"), "FAILED since ", "the backing file was truncated") // at once, and for good
}

// TestHealthDeleted: a file that was deleted is served, and lost when it is closed.
func TestHealthDeleted(t *testing.T) {
	l := serveLive(t, liveConfig)
	if err := os.Remove(filepath.Join(l.dir, "file")); err != nil {
		t.Fatal(err)
	}
	eventually.Says(t, l.log.String, `level=WARN msg="health of a volume" volume=file state=degraded reason=`, "was deleted")
}

// TestHealthOfAnAddedVolume: while a volume is opened that the configuration in force does
// not have yet, what is known of it is not forgotten.
func TestHealthOfAnAddedVolume(t *testing.T) {
	d, _, _ := qosDaemon(t, "{}")
	for _, open := range d.assembly.Open {
		d.Health.Serves("added", open.Slot)
	}
	d.tellHealth(slog.New(slog.DiscardHandler), time.Now())
	if d.Health.Slot("added") == nil {
		t.Error("it is forgotten, expected that it is not while it is open")
	}
	d.Health.Forget("added")
	if d.Health.Slot("added") != nil {
		t.Error("a volume that is closed is not forgotten")
	}
}
