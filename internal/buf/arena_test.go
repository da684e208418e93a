package buf

import (
	"strings"
	"testing"

	"lunar/internal/arena"
	"lunar/internal/arena/arenatest"
)

// All pages are there from the start, of whatever size they are.
func TestPoolIsTouched(t *testing.T) {
	for _, huge := range []arena.Huge{arena.HugeAuto, arena.HugeOff} {
		p, err := NewHugePool(3<<20+1, 0, huge)
		if err != nil {
			t.Fatal(err)
		}
		if p.Size() != 3<<20+PageSize || len(p.mem) != p.Size() {
			t.Errorf("huge %v: %d bytes, expected whole pages of %d", huge, p.Size(), PageSize)
		}
		if pages, _ := p.Pages(); huge == arena.HugeOff && pages != arena.SmallPages {
			t.Errorf("huge %v: found %v pages", huge, pages)
		}
		if placed, err := arenatest.Placed(p.mem); err != nil {
			t.Logf("where the pages are is not known: %v", err)
		} else if placed.Missing != 0 {
			t.Errorf("huge %v: %d pages do not exist yet", huge, placed.Missing)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A pool that does not fit is refused before anything is taken.
func TestPoolThatDoesNotFit(t *testing.T) {
	p, err := NewHugePool(8<<40, -1, arena.HugeOff)
	if err == nil {
		t.Fatalf("a pool of %d bytes was made", p.Size())
	}
	if !strings.Contains(err.Error(), "buffer pool") || !strings.Contains(err.Error(), "8TiB") {
		t.Errorf("%v: expected an error that names what was asked for", err)
	}
}
