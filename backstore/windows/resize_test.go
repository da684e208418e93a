package windows

import (
	"bytes"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
)

// TestRegionsOfAnotherSize: whatever a bit stood for, a bit stands for after the volume has
// another size.
func TestRegionsOfAnotherSize(t *testing.T) {
	const gib = 1 << 30
	for _, tc := range []struct{ from, to int64 }{{8 << 20, 9<<20 + 512}, {31 * gib, 33 * gib}, {100 * gib, 20 * gib}, {40 * gib, 1 << 20}, {gib, 4096 * gib}} {
		for _, off := range []int64{0, 1 << 20, tc.from / 3, tc.from - 1} {
			var r regions
			r.add(off >> regionShift(tc.from))
			r.resize(tc.from, tc.to)
			shift := regionShift(tc.to)
			for at := range min((tc.to-1)>>shift+1, regionsMost) {
				first, last := at<<shift, (at+1)<<shift-1
				was := off >> regionShift(tc.from) << regionShift(tc.from)
				want := first < was+1<<regionShift(tc.from) && was <= last || tc.to > tc.from && last >= tc.from
				if r.has(at) != want {
					t.Fatalf("%d bytes at %d become %d: region %d is %t, expected %t", tc.from, off, tc.to, at, r.has(at), want)
				}
			}
			if last := (tc.to-1)>>shift + 1; last < regionsMost && r.has(last) {
				t.Errorf("a region behind the end of %d bytes", tc.to)
			}
		}
	}
}

// TestResizeOfLargerMembers: what members have behind the end of the volume is no part of
// it when it grows.
func TestResizeOfLargerMembers(t *testing.T) {
	a, b := mem(t, 2*crashSize), mem(t, 3*crashSize)
	for i, s := range []backstore.Store{a, b} {
		k := backstoretest.NewClient(t, s, backstoretest.NewLoop(t, false))
		k.Write(t, crashSize, backstoretest.Pattern(4096, uint64(i)))
	}
	c := mirrorOf(a, b, mem(t, MapSize))
	c.Size = crashSize
	m := openMirror(t, c)
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	whole(t, m)
	if err := m.Resize(2 * crashSize); err != nil {
		t.Fatal(err)
	}
	whole(t, m)
	k := backstoretest.NewClient(t, m, backstoretest.NewLoop(t, false))
	if got := k.Read(t, crashSize, 4096); !bytes.Equal(got, make([]byte, 4096)) {
		t.Error("what is new does not read as zeroes")
	}
}

// TestResizeWithoutAMember: a member that was away while the volume grew grows when it is
// back.
func TestResizeWithoutAMember(t *testing.T) {
	p := newPower(1, mem(t, crashSize), mem(t, crashSize), mem(t, MapSize))
	c := mirrorOf(p.stores[0], p.stores[1], p.stores[2])
	c.Window = time.Hour
	m := openMirror(t, c)
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		if !bytes.Equal(p.stores[0].Bytes(), p.stores[1].Bytes()) {
			t.Error("the members differ")
		}
	})
	m.poke()
	whole(t, m)
	m.gate.Lock()
	err := m.drop(m.other(), errBroken)
	m.gate.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Resize(2 * crashSize); err != nil {
		t.Fatal(err)
	}
	k := backstoretest.NewClient(t, m, backstoretest.NewLoop(t, false))
	k.Write(t, 2*crashSize-4096, backstoretest.Pattern(4096, 1))
	if _, err := m.Rejoin(t.Context()); err != nil {
		t.Fatal(err)
	}
	whole(t, m)
}
