package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/internal/control"
	"lunar/internal/initiator"
	"lunar/target/scsi"
)

// awaitWords waits until text has all words.
func awaitWords(t *testing.T, text func() string, words ...string) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		found, missing := text(), ""
		for _, w := range words {
			if !strings.Contains(found, w) {
				missing = w
			}
		}
		if missing == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("found no %q in\n%s", missing, found)
		}
	}
}

// TestHealth: a volume whose file was cut or deleted is not told to be well, by status,
// metrics or log, whether or not somebody reads there.
func TestHealth(t *testing.T) {
	l := serveLive(t, strings.ReplaceAll(liveConfig, "file, size: 1MiB", "file, size: 3MiB"))
	l.has(l.metrics(), `lunar_volume_health{volume="file"} 0`, `lunar_volume_health{volume="ram"} 0`)
	path := filepath.Join(l.dir, "file")
	if err := os.Truncate(path, 1<<20); err != nil {
		t.Fatal(err)
	}
	awaitWords(t, l.log.String, `level=ERROR msg="health of a volume" volume=file state=failed reason=`, "has 1048576 bytes, expected 3145728")
	l.has(l.tgtd(exitOK, "status"), "FAILED since ", "has 1048576 bytes, expected 3145728")
	l.has(l.tgtd(exitOK, "status", "--json"), `"health":{"state":"failed","troubles":[{"state":"failed","what":"`, `"health":{"state":"ok","troubles":[]}`)
	l.has(l.metrics(), `lunar_volume_health{volume="file"} 2`, `lunar_volume_health{volume="ram"} 0`)
	if err := os.Truncate(path, 3<<20); err != nil {
		t.Fatal(err)
	}
	awaitWords(t, l.log.String, `level=INFO msg="health of a volume" volume=file state=ok`)

	if err := os.Truncate(path, 1<<20); err != nil {
		t.Fatal(err)
	}
	c := dial(t, l.portal, initiator.Options{Target: "iqn.2026-11.test:t", CHAP: chap("the first secret")})
	settle(t, c, 0)
	if r, err := c.Command(cdb10(0x28, 4000), 0, nil, 64<<10); err != nil || r.Status != initiator.StatusCheckCondition {
		t.Fatalf("found %+v, %v, expected an error behind the end", r, err)
	}
	l.has(l.tgtd(exitOK, "status"), "FAILED since ", "the backing file was truncated") // at once, and for good
}

// TestHealthDeleted: a file that was deleted is served, and lost when it is closed.
func TestHealthDeleted(t *testing.T) {
	l := serveLive(t, liveConfig)
	if err := os.Remove(filepath.Join(l.dir, "file")); err != nil {
		t.Fatal(err)
	}
	awaitWords(t, l.log.String, `level=WARN msg="health of a volume" volume=file state=degraded reason=`, "was deleted")
}

// TestHealthKept: what cannot be saved of a volume is told, until it can; beside what is
// worse it makes nothing better.
func TestHealthKept(t *testing.T) {
	d, _, _ := qosDaemon(t, "{}")
	full := errors.New("no space left on device")
	save := keeping(d.health, "v", "reservations", func(err error) error { return err })
	cached := d.snapshot()
	var lu *scsi.LogicalUnit
	for _, lu = range d.assembly.units {
	}
	cut := []backstore.Trouble{{Failed: true, What: "cut"}}
	for _, test := range []struct {
		found []backstore.Trouble
		err   error
		state string
	}{{nil, nil, control.HealthOK}, {nil, full, control.HealthDegraded}, {cut, full, control.HealthFailed}, {nil, nil, control.HealthOK}} {
		d.health.of("v").found = test.found
		if err := save(test.err); err != test.err {
			t.Errorf("found %v", err)
		}
		h := d.health.judge("v", lu, &cached, time.Now())
		if h.State != test.state || test.err != nil && h.Troubles[len(test.found)].What != "reservations cannot be saved: no space left on device" {
			t.Errorf("found %+v, expected %s", h, test.state)
		}
	}
}
