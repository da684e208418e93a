package crypt

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// disk is a header file whose power fails: from the write number cut on nothing
// arrives, and of that one the first torn bytes do. What was not made stable before
// may be there or not; here it never is, but for those bytes.
type disk struct {
	bytes [fileSize]byte
	cut   int // 0: never
	torn  int
	fails bool // later writes succeed again
}

var errCut = errors.New("no power")

// ReadAt implements file.
func (d *disk) ReadAt(b []byte, off int64) error {
	copy(b, d.bytes[off:])
	return nil
}

// WriteStable implements file.
func (d *disk) WriteStable(b []byte, off int64) error {
	if d.cut > 0 {
		if d.cut--; d.cut == 0 {
			copy(d.bytes[off:], b[:d.torn])
			if !d.fails {
				d.cut = -1
			}
			return errCut
		}
	}
	if d.cut < 0 {
		return errCut
	}
	copy(d.bytes[off:], b)
	return nil
}

// Close implements file.
func (d *disk) Close() error { return nil }

func key(n byte) *Key {
	k := newKey()
	k.bytes[0], k.bytes[1] = n, 1
	return k
}

func master(n byte) *[MasterSize]byte { return &[MasterSize]byte{n, 2} }

// formatted is a disk with a header for the master key 1, wrapped by key 1.
func formatted() *disk {
	d := &disk{}
	copy(d.bytes[:], FileOf(newHeader(key(1), 512).encode(master(1))))
	return d
}

func reopen(t *testing.T, d *disk, k, old *Key) (*header, *[MasterSize]byte) {
	t.Helper()
	d.cut = 0
	h, m, err := openHeader(&slots{file: d}, k, old, 512, ID{}, false)
	if err != nil {
		t.Fatal(err)
	}
	return h, m
}

// holds reports how many slots have something.
func (d *disk) holds() (n int) {
	for i := range 2 {
		if !zero(d.bytes[i*slotSize:][:slotSize]) {
			n++
		}
	}
	return n
}

// TestReplaceAndPowerCut: wherever the power fails while a key is replaced, there is
// the old master key or the new one; the new one once it was in force; and after the
// next start there is one copy of one key.
func TestReplaceAndPowerCut(t *testing.T) {
	for rounds := range 3 {
		for cut := range 4 {
			for _, torn := range []int{0, 1, 7, 8, 100, headerSize - 1, headerSize, slotSize} {
				for _, fails := range []bool{false, true} {
					d := formatted()
					h, was := reopen(t, d, key(1), nil)
					for n := range rounds {
						was = master(byte(10 + n))
						if err := h.replace(was); err != nil {
							t.Fatal(err)
						}
					}
					d.cut, d.torn, d.fails = cut, torn, fails
					err := h.replace(master(2))
					_, now := reopen(t, d, key(1), nil)
					what := fmt.Sprintf("%d rounds, cut %d, torn %d, fails %v: %v, found key %d", rounds, cut, torn, fails, err, now[0])
					switch {
					case *now != *was && *now != *master(2):
						t.Errorf("%s: neither the old nor the new one", what)
					case (err == nil || errors.Is(err, errRemains)) && *now != *master(2):
						t.Errorf("%s, expected the new one", what)
					case err != nil && !errors.Is(err, ErrDoubt) && !errors.Is(err, errRemains) && *now != *was:
						t.Errorf("%s, expected the old one", what)
					case d.holds() != 1:
						t.Errorf("%s: %d copies", what, d.holds())
					}
				}
			}
		}
	}
}

// TestReplaceAfterFailure: a key that could not be overwritten is overwritten by the
// next one.
func TestReplaceAfterFailure(t *testing.T) {
	d := formatted()
	h, _ := reopen(t, d, key(1), nil)
	old := bytes.Clone(d.bytes[wrappedAt:sumAt])
	d.cut, d.fails = 2, true
	if err := h.replace(master(2)); !errors.Is(err, errRemains) {
		t.Fatalf("found %v, expected that the old key remains", err)
	}
	if err := h.replace(master(3)); err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(d.bytes[:], old) || d.holds() != 1 {
		t.Error("the first key is still there")
	}
	if _, m := reopen(t, d, key(1), nil); *m != *master(3) {
		t.Errorf("found key %d, expected 3", m[0])
	}
}

// TestRotation: old-key-file opens the header once, and never again.
func TestRotation(t *testing.T) {
	d := formatted()
	if _, _, err := openHeader(&slots{file: d}, key(2), nil, 512, ID{}, false); err == nil || !strings.Contains(err.Error(), "another one") {
		t.Errorf("a wrong key: %v", err)
	}
	if _, _, err := openHeader(&slots{file: d}, key(2), key(3), 512, ID{}, false); err == nil {
		t.Error("two wrong keys open it")
	}
	before := d.bytes
	if _, m, err := openHeader(&slots{file: d}, key(2), key(1), 512, ID{}, true); err != nil || *m != *master(1) || d.bytes != before {
		t.Errorf("for reading only: %v", err)
	}
	if _, m := reopen(t, d, key(2), key(1)); *m != *master(1) {
		t.Error("another master key")
	}
	if _, m := reopen(t, d, key(2), key(1)); *m != *master(1) {
		t.Error("another master key after the second start")
	}
	if _, _, err := openHeader(&slots{file: d}, key(1), nil, 512, ID{}, false); err == nil {
		t.Error("the old key opens it still")
	}
}

// TestChangedHeader: whatever byte of the header is changed, it is refused, also by
// somebody who knows how sums are made; and nothing is written.
func TestChangedHeader(t *testing.T) {
	for at := range headerSize {
		for _, summed := range []bool{false, true} {
			d := formatted()
			d.bytes[at] ^= 1
			if summed {
				putSum(d.bytes[:slotSize])
			}
			before := d.bytes
			_, _, err := openHeader(&slots{file: d}, key(1), nil, 512, ID{}, false)
			if sumOnly := at >= sumAt && summed; (err == nil) != sumOnly {
				t.Errorf("byte %d, summed %v: %v", at, summed, err)
			}
			if d.bytes != before {
				t.Fatalf("byte %d: the file was changed", at)
			}
		}
	}
	if _, _, err := openHeader(&slots{file: formatted()}, key(1), nil, 4096, ID{}, false); err == nil || !strings.Contains(err.Error(), "512") {
		t.Errorf("another size of a block: %v", err)
	}
	if _, _, err := openHeader(&slots{file: &disk{}}, key(1), nil, 512, ID{}, false); err == nil {
		t.Error("an empty file is a header")
	}
}

// TestOldSlotIsNoWayBack: a slot of before does not count, even if the one that does
// cannot be unwrapped.
func TestOldSlotIsNoWayBack(t *testing.T) {
	d := formatted()
	old := bytes.Clone(d.bytes[:slotSize])
	h, _ := reopen(t, d, key(1), nil)
	if err := h.replace(master(2)); err != nil {
		t.Fatal(err)
	}
	copy(d.bytes[:], old)
	d.bytes[slotSize+wrappedAt] ^= 1
	putSum(d.bytes[slotSize:])
	if _, _, err := openHeader(&slots{file: d}, key(1), nil, 512, ID{}, false); err == nil {
		t.Error("the key of before is in force again")
	}
}

// TestRewrapAndPowerCut: wherever the power fails while the header is wrapped by another
// key, one of both opens it and has the same master key; and what failed can be undone.
func TestRewrapAndPowerCut(t *testing.T) {
	for cut := range 4 {
		for _, torn := range []int{0, 100, headerSize, slotSize} {
			for _, fails := range []bool{false, true} {
				d := formatted()
				h, _ := reopen(t, d, key(1), nil)
				d.cut, d.torn, d.fails = cut, torn, fails
				err := h.rewrap(key(2))
				what := fmt.Sprintf("cut %d, torn %d, fails %v: %v", cut, torn, fails, err)
				if h.key.Fingerprint() != key(1).Fingerprint() != (err == nil || errors.Is(err, errRemains)) {
					t.Errorf("%s: another key is in force", what)
				}
				if fails {
					d.cut = 0
					if err := errors.Join(h.rewrap(key(3)), h.replace(master(4))); err != nil {
						t.Errorf("%s: afterwards: %v", what, err)
					}
					if _, m := reopen(t, d, key(3), nil); *m != *master(4) || d.holds() != 1 {
						t.Errorf("%s: found key %d in %d copies", what, m[0], d.holds())
					}
					continue
				}
				if _, m := reopen(t, d, key(2), key(1)); *m != *master(1) || d.holds() != 1 {
					t.Errorf("%s: found key %d in %d copies", what, m[0], d.holds())
				}
			}
		}
	}
}

// TestEveryBit: of a header file no bit flips so that it has another master key: it is
// refused, or the bit does not matter and is mended.
func TestEveryBit(t *testing.T) {
	refused := 0
	for bit := range fileSize * 8 {
		if bit/8 >= headerSize && bit%13 != 0 {
			continue // nothing is there: some will do
		}
		d := formatted()
		d.bytes[bit/8] ^= 1 << (bit % 8)
		before := d.bytes
		at := &slots{file: d}
		_, m, err := openHeader(at, key(1), nil, 512, ID{}, false)
		switch {
		case bit/8 < headerSize && err == nil:
			t.Errorf("bit %d: it was taken", bit)
		case err != nil && d.bytes != before:
			t.Errorf("bit %d: the file was changed", bit)
		case err == nil && (*m != *master(1) || at.counts != 0):
			t.Errorf("bit %d: found key %d of slot %d", bit, m[0], at.counts)
		}
		if err != nil {
			refused++
		}
	}
	t.Logf("%d flips were refused", refused)
}
