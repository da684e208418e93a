package scsi

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"lunar/backstore"
	"lunar/target/scsi/sense"
)

// cryptoUnit is sanitizeUnit with a key to forget.
func cryptoUnit(t *testing.T, discards bool) (*thread, *Nexus, *medium) {
	m := newMedium(1<<20 + 4096)
	m.info.CryptoErase, m.info.Discard, m.info.DiscardZeroes = true, discards, discards
	n := newUnit(t, m, LUConfig{Name: "v"})
	th := newThread(t, m, 1)
	copy(m.mu.bytes, bytes.Repeat([]byte{'a'}, len(m.mu.bytes)))
	return th, n, m
}

func kinds(ops []backstore.Op) (out []backstore.Kind) {
	for _, op := range ops {
		out = append(out, op.Kind)
	}
	return out
}

// TestCryptoErase: the key goes first, then the space, where it can be given back.
func TestCryptoErase(t *testing.T) {
	for _, discards := range []bool{true, false} {
		want := []backstore.Kind{backstore.Erase, backstore.Flush}
		if discards {
			want = slices.Insert(want, 1, backstore.Discard)
		}
		for _, immediate := range []byte{0, 0x80} {
			th, n, m := cryptoUnit(t, discards)
			x := th.start(n, sanitizeCDB(0x03|immediate, nil), nil, 0)
			th.finishAll()
			if x.ends != 1 || x.c.Status != Good || n.LU.State().Sanitize != nil {
				t.Fatalf("ended %d times, status %02x", x.ends, x.c.Status)
			}
			if got := kinds(m.ops()); !slices.Equal(got, want) {
				t.Errorf("operations %v, expected %v", got, want)
			}
			if op := m.ops()[0]; op.Off != 0 || op.Len != int64(len(m.mu.bytes)) {
				t.Errorf("erased %d bytes at %d", op.Len, op.Off)
			}
			if bytes.Contains(m.mu.bytes, []byte("aaaa")) {
				t.Error("data are there still")
			}
		}
	}
}

// TestCryptoEraseShutsOthersOut: a write that came before has ended when the key goes,
// or comes never.
func TestCryptoEraseShutsOthersOut(t *testing.T) {
	for seed := range uint64(20) {
		th, n, m := cryptoUnit(t, false)
		th.rng.Uint64N(seed + 1)
		th.defers, th.late = 100, 50
		x := th.start(n, cdb10(0x2a, 0, 0, 16), bytes.Repeat([]byte{9}, 16*512), 0)
		y := th.start(n, sanitizeCDB(0x03, nil), nil, 0)
		th.finishAll()
		if x.ends != 1 || y.ends != 1 || y.c.Status != Good {
			t.Fatalf("ended %d and %d times, status %02x", x.ends, y.ends, y.c.Status)
		}
		if got := kinds(m.ops()); slices.Contains(got[slices.Index(got, backstore.Erase):], backstore.Write) {
			t.Errorf("operations %v: a write after the erasure", got)
		}
	}
}

// TestCryptoEraseFails: the unit is of no use until an operation succeeds.
func TestCryptoEraseFails(t *testing.T) {
	for _, kind := range []backstore.Kind{backstore.Erase, backstore.Discard, backstore.Flush} {
		th, n, m := cryptoUnit(t, true)
		m.fail = func(op *backstore.Op) error {
			if op.Kind == kind {
				return errors.New("broken")
			}
			return nil
		}
		x := th.start(n, sanitizeCDB(0x03, nil), nil, 0)
		th.finishAll()
		if x.ends != 1 || x.c.Sense == nil || *x.c.Sense != *sense.SanitizeFailed {
			t.Fatalf("%v: ended %d times with %+v", kind, x.ends, x.c.Sense)
		}
		m.fail = nil
		if y := th.start(n, testUnitReady, nil, 0); y.c.Sense == nil || *y.c.Sense != *sense.SanitizeFailed {
			t.Errorf("%v: TEST UNIT READY: %+v", kind, y.c.Sense)
		}
		th.start(n, sanitizeCDB(0x03, nil), nil, 0)
		th.finishAll()
		if y := th.start(n, testUnitReady, nil, 0); y.c.Status != Good {
			t.Errorf("%v: TEST UNIT READY after all: %+v", kind, y.c.Sense)
		}
	}
}

// TestCryptoEraseIsAnnounced: where there is a key, and nowhere else.
func TestCryptoEraseIsAnnounced(t *testing.T) {
	for _, there := range []bool{false, true} {
		info := diskInfo()
		info.CryptoErase = there
		d := newDisk(t, info, LUConfig{Name: "v"})
		rows := d.nexus.LU.supportedCommands()
		if slices.ContainsFunc(rows, func(r *Row) bool { return r.Opcode == 0x48 && r.ServiceAction == 3 }) != there {
			t.Errorf("supported, where a key is there: %v", there)
		}
		if body := blockCharacteristics(info); (body[3]&0x30 == 0x10) != there {
			t.Errorf("WACEREQ in %02x, where a key is there: %v", body[3], there)
		}
	}
	info := diskInfo()
	info.CryptoErase = true
	newDisk(t, info, LUConfig{Name: "v"}).refused(sanitizeCDB(0x03, make([]byte, 8)), nil, sense.InvalidFieldInCDB(8, 3))
	newDisk(t, info, LUConfig{Name: "v", ReadOnly: true}).refused(sanitizeCDB(0x03, nil), nil, sense.WriteProtected)
}
