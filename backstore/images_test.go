package backstore_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/images"
)

// TestDirectAfterSnapshot: a file of xfs that shares blocks is opened with direct I/O and the
// blocks that it had before, and takes writes of them.
func TestDirectAfterSnapshot(t *testing.T) {
	config := backstore.FileConfig{
		Path: filepath.Join(backstoretest.Reflink(t, "xfs"), "disk"), Size: 1 << 20, BlockSize: 512, Direct: true, Logger: slog.New(slog.DiscardHandler),
	}
	if err := os.WriteFile(config.Path, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "two"} {
		t.Run(name, func(t *testing.T) {
			s, err := backstore.OpenFile(config)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
			all, err := s.(images.Source).Images()
			if err != nil {
				t.Fatal(err)
			}
			draft, err := all.Begin(name)
			if err == nil {
				err = draft.Take(t.Context(), nil, "")
			}
			if err == nil {
				err = draft.Keep(time.Now())
			}
			if err != nil {
				t.Fatal(err)
			}
			c := backstoretest.NewClient(t, s, backstoretest.NewLoop(t, false))
			if err := c.Do(backstore.Op{Kind: backstore.Write, Off: 512, Data: backstoretest.Buffer(512)}); err != nil {
				t.Error(err)
			}
		})
	}
}
