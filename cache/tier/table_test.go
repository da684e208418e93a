package tier

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
)

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
	flipRow(t, s, int64(name-atName*8))
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
	var old [rowBytes]byte
	if _, err := file.ReadAt(old[:], at); err != nil {
		t.Fatal(err)
	}
	for bit := range rowBytes * 8 {
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

// TestRowAtAnyStore: of a process that ends between any two stores of a change nothing is
// found that it has not left.
func TestRowAtAnyStore(t *testing.T) {
	table := ownTable(4)
	sound := func() {
		t.Helper()
		if err := table.check(); err != nil {
			t.Error(err)
		}
	}
	r := table.row(2)
	for round := range uint64(2) {
		r.give(round + 1)
		sound()
		r.open([3]uint64{1, 2, round}, 1<<30, "volume")
		for at := atIdentity; at < rowWords; at++ {
			if at != atIdentity && at != atState && at != atAlive && at != atCheck {
				r.change(func() { r.store(at, round<<at|1); sound() })
			}
			r.beat(time.Now().UnixNano())
			sound()
		}
		for _, state := range []uint64{rowSettling, rowSettled, backstore.Disturbed, rowClosed} {
			r.store(atState, state)
			sound()
		}
		r.resize(1<<20, 1<<30)
		sound()
		r.close(backstore.Stamp{State: [3]uint64{1, 2, 3}})
		sound()
		if r.load(atCheck) == 0 {
			t.Error("the row has no checksum")
		}
		r.free()
		sound()
	}
}
