package daemon

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"lunar/control"
)

// TestPromiseWatch: a line when a reservation begins to be missed, and one when it is met
// again, however long that lasts.
func TestPromiseWatch(t *testing.T) {
	var text bytes.Buffer
	log, w := slog.New(slog.NewTextHandler(&text, nil)), promiseWatch{}
	for _, now := range [][2]int64{{0, 5}, {1, 5}, {1, 6}, {1, 9}, {2, 10}, {3, 10}, {4, 10}, {4, 11}} { // met, missed
		w.tell(log, []control.Promised{{Rule: "r", Name: "n", Met: now[0], Missed: now[1]}})
	}
	w.tell(log, nil)
	if got := text.String(); strings.Count(got, "a reservation is missed") != 2 || strings.Count(got, "is met again") != 1 || strings.Count(got, "\n") != 3 {
		t.Errorf("found %q", got)
	}
}
