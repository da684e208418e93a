package volumes

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestCacheProgress: a start that takes long says how far it is, once a second.
func TestCacheProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		progress := cacheProgress(slog.New(slog.NewTextHandler(&out, nil)))
		const total = 100 << 20
		for i := range int64(100) {
			time.Sleep(50 * time.Millisecond)
			progress((i+1)*total/100, total)
		}
		log := out.String()
		if lines := strings.Count(log, "\n"); lines != 4 || !strings.Contains(log, `percent=40 of=100MiB`) || strings.Contains(log, "percent=100") {
			t.Errorf("found %d lines\n%s", lines, log)
		}
	})
}
