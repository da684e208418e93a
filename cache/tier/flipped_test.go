package tier

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"lunar/backstore/backstoretest"
	"lunar/cache/internal/volumes"
)

// A row of the table of volumes has the name from a byte on, in so many bytes.
const nameAt, nameBytes = 128, 128

// TestFlippedRow: a bit that flips in the row of a volume with unwritten data is refused with
// the segment's name, and not taken for a store that has changed. Back in its place, all
// is well.
func TestFlippedRow(t *testing.T) {
	s := newSite(t)
	s.leave(t, backstoretest.Pattern(8<<10, 1))
	image, err := os.ReadFile(s.options.Segment)
	if err != nil {
		t.Fatal(err)
	}
	name := bytes.Index(image, append([]byte("a"), make([]byte, nameBytes-1)...))
	if name < 0 || name%8 != 0 {
		t.Fatalf("the row's name is at byte %d", name)
	}
	flipRow(t, s, int64(name-nameAt))
	s.start().end()
}

// flipRow flips each bit of a row that has a checksum.
func flipRow(t *testing.T, s *site, at int64) {
	t.Helper()
	file, err := os.OpenFile(s.options.Segment, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var old [volumes.RowBytes]byte
	if _, err := file.ReadAt(old[:], at); err != nil {
		t.Fatal(err)
	}
	for bit := range volumes.RowBytes * 8 {
		flipped := []byte{old[bit/8] ^ 1<<(bit%8)}
		if _, err := file.WriteAt(flipped, at+int64(bit/8)); err != nil {
			t.Fatal(err)
		}
		r, err := Rehearse(s.options)
		if err == nil {
			err = r.End()
		}
		if err == nil || !strings.Contains(err.Error(), s.options.Segment+" has a damaged table of volumes") {
			t.Errorf("bit %d of word %d: %v", bit%64, bit/64, err)
		}
		if _, err := file.WriteAt(old[bit/8:bit/8+1], at+int64(bit/8)); err != nil {
			t.Fatal(err)
		}
	}
}
