package tier

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"testing"

	"lunar/backstore/backstoretest"
)

// TestSegmentLost: that the file is gone from where the next process looks is said
// once, and what is dirty still goes to the store.
func TestSegmentLost(t *testing.T) {
	for name, lose := range map[string]func(path string) error{
		"removed":  os.Remove,
		"renamed":  func(path string) error { return os.Rename(path, path+".old") },
		"replaced": func(path string) error { return os.Rename(path+".new", path) },
	} {
		t.Run(name, func(t *testing.T) {
			var said bytes.Buffer
			s := newSite(t)
			s.options.Logger = slog.New(slog.NewTextHandler(&said, nil))
			p := s.start()
			data := backstoretest.Pattern(page, 1)
			p.open("a", Back).Write(t, 0, data)
			p.cache.look()
			if p.cache.Snapshot().Lost || strings.Contains(said.String(), "level=ERROR") {
				t.Errorf("it is there, but: %s", said.String())
			}
			if err := os.WriteFile(s.options.Segment+".new", nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := lose(s.options.Segment); err != nil {
				t.Fatal(err)
			}
			p.cache.look()
			p.cache.look()
			if n := strings.Count(said.String(), "level=ERROR"); n != 1 || !p.cache.Snapshot().Lost {
				t.Errorf("%d errors were logged, expected one: %s", n, said.String())
			}
			p.end()
			if !bytes.Equal(s.file("a")[:page], data) {
				t.Error("what was dirty has not been written")
			}
		})
	}
}
