package protect

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
)

// TestMadeAnewIsNamed: the blocks whose tuples recovery makes anew are told, merged, in one
// line for regions that lie side by side, and counted.
func TestMadeAnewIsNamed(t *testing.T) {
	const size = 8 << 20
	dir := t.TempDir()
	c := closed(t, opened(t, dir, Type1, size))
	for _, mib := range []int64{1, 2, 5} {
		c.Write(t, mib<<20, backstoretest.Pattern(1<<20, uint64(mib)))
	}
	c.Must(t, backstore.Op{Kind: backstore.Flush})
	left := crashed(t, dir)
	for _, lba := range []int64{2048, 2050, 4094, 4095, 4096, 10300} {
		flip(t, filepath.Join(left, "data"), lba*512*8+77)
	}
	s, log := reopened(t, left, size, false)
	for _, want := range []string{`first=2048 blocks=5 lbas="2048+1 2050+1 4094+3"`, "first=10300 blocks=1 lbas=10300+1", "blocks-made-anew=6"} {
		if !strings.Contains(log, want) {
			t.Errorf("found %s, expected %s", log, want)
		}
	}
	if n := s.Anew(); n != 6 {
		t.Errorf("counted %d blocks, expected 6", n)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, log := reopened(t, left, size, false); s.Anew() != 0 || log != "" {
		t.Errorf("a start after an orderly stop: %d, %s", s.Anew(), log)
	} else if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestMadeAnewIsBounded: however many blocks there are, lines and their lengths are few,
// and the sum is right.
func TestMadeAnewIsBounded(t *testing.T) {
	var log strings.Builder
	a := anew{log: slog.New(slog.NewTextHandler(&log, nil))}
	const regions, blocks = 1000, 200
	for region := range regions {
		a.enter(2 * region)
		for i := range uint64(blocks) {
			a.add(uint64(region)*10_000 + 2*i)
		}
	}
	a.end()
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != anewLines+1 || a.sum != regions*blocks {
		t.Fatalf("found %d lines and %d blocks, expected %d and %d", len(lines), a.sum, anewLines+1, regions*blocks)
	}
	if want := "14+1 16+1 18+1 20+1 22+1 24+1 26+1 28+1 30+1 and 184 more"; !strings.Contains(lines[0], want) {
		t.Errorf("found %s, expected %s", lines[0], want)
	}
	if want := "runs=936 blocks=187200"; !strings.Contains(lines[anewLines], want) {
		t.Errorf("found %s, expected %s", lines[anewLines], want)
	}
}
