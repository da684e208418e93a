package scsi

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"testing"
)

// TestCopyIsWhole: a copy has all of an atomic write or nothing of it, also where it
// lies on the border of two windows, from whatever moment of the copy on.
func TestCopyIsWhole(t *testing.T) {
	const blocks, border, to = 512, windowBytes / 512, 8192
	for seed := range uint64(50) {
		m := newMedium(8 * mib)
		n := newUnit(t, m, LUConfig{})
		th, other, random := slow(t, m, seed), slow(t, m, seed+1000), rand.New(rand.NewPCG(seed, 1))
		th.reach = []*Nexus{n}
		list := copyLID1(0, [][]byte{naaCSCD(n.LU)}, [][]byte{blocksSegment(0, 0, 5*border/2, 0, to, 0)})
		copying := th.start(n, copyCDB(0, list), list, 0)
		for range random.IntN(16) {
			th.turn()
		}
		first := random.IntN(2)*border + border - blocks/2
		writing := other.start(n, cdb16(0x9c, 0, uint64(first), blocks), bytes.Repeat([]byte{1}, blocks*512), 0)
		for copying.ends+writing.ends < 2 {
			[]*thread{th, other}[random.IntN(2)].turn()
		}
		if copying.c.Status != Good || writing.c.Status != Good {
			t.Fatalf("seed %d: copy %02x %+v, write %02x %+v", seed, copying.c.Status, copying.c.Sense, writing.c.Status, writing.c.Sense)
		}
		if got := m.mu.bytes[(to+first)*512:][:blocks*512]; !bytes.Equal(got[1:], got[:len(got)-1]) {
			t.Fatalf("seed %d: the copy has a part of an atomic write", seed)
		}
		if a := &n.LU.atomics; a.pending.Load() || len(a.turns) != 0 {
			t.Fatalf("%d turns are left", len(a.turns))
		}
		checkGuardFree(t, n.LU)
	}
}

// TestCopiesBesideAtomicWrites: many of both come to their ends, on several threads.
func TestCopiesBesideAtomicWrites(t *testing.T) {
	const threads, rounds, blocks, border = 3, 30, 512, windowBytes / 512
	m := newMedium(16 * mib)
	k := newCrew(t, m, threads)
	for i, th := range k.threads {
		th.reach = k.nexuses[i : i+1]
	}
	k.run(t, func(i int) {
		for round := range rounds {
			if i == 0 {
				for range 100 * (round % 3) {
					runtime.Gosched()
				}
				data := bytes.Repeat([]byte{byte(round + 1)}, blocks*512)
				cdb := cdb16(0x9c, 0, border-blocks/2, blocks)
				x := k.do(i, cdb, data, 0)
				for x.c.Status == Busy {
					x = k.do(i, cdb, data, 0)
				}
				if x.c.Status != Good {
					t.Errorf("status %02x, sense %+v", x.c.Status, x.c.Sense)
				}
				continue
			}
			to := uint64(i * 8192)
			list := copyLID1(0, [][]byte{naaCSCD(k.nexuses[i].LU)}, [][]byte{blocksSegment(0, 0, 3*border/2, 0, to, 0)})
			if x := k.do(i, copyCDB(0, list), list, 0); x.c.Status != Good {
				t.Errorf("copy: status %02x, sense %+v", x.c.Status, x.c.Sense)
			}
			got := k.do(i, cdb16(0x88, 0, to+border-blocks/2, blocks), nil, blocks*512).in
			if !bytes.Equal(got[1:], got[:len(got)-1]) {
				t.Errorf("round %d: a copy found %d and %d", round, got[0], got[len(got)-1])
			}
		}
	})
	checkGuardFree(t, k.nexuses[0].LU)
	if a := &k.nexuses[0].LU.atomics; a.pending.Load() || len(a.turns) != 0 {
		t.Errorf("%d turns are left", len(a.turns))
	}
}
