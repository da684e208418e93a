package scsi

import (
	"bytes"
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"
)

// TestMediaAgainstModel runs random media commands with random timing and
// compares status, data and the medium with a byte slice.
func TestMediaAgainstModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		size := rapid.SampledFrom([]int{512, 4096}).Draw(rt, "block size")
		m := newMedium(2*mib + 3*4096)
		n := newUnit(t, m, LUConfig{Name: "v", BlockSize: size})
		th := newThread(t, m, rapid.Uint64().Draw(rt, "seed"))
		th.starve = rapid.IntRange(0, 60).Draw(rt, "starve")
		th.part = rapid.SampledFrom([]int64{0, 64 << 10, 8 << 10}).Draw(rt, "part")
		th.defers = rapid.IntRange(0, 100).Draw(rt, "defers")
		th.late = rapid.IntRange(0, 100).Draw(rt, "late")
		th.lends = rapid.IntRange(0, 100).Draw(rt, "lends")
		model := make([]byte, len(m.mu.bytes))
		for range rapid.IntRange(1, 8).Draw(rt, "commands") {
			randomCommand(rt, th, n, size, model)
			if !bytes.Equal(model, m.mu.bytes) {
				rt.Fatal("the medium is not what the model is")
			}
		}
		th.pool.Close()
	})
}

// fresh returns n bytes whose blocks differ, but for those that are zero.
func (th *thread) fresh(n int) []byte {
	b := make([]byte, n)
	for at := 0; at < n; at += 512 {
		block := b[at:min(at+512, n)]
		copy(block, bytes.Repeat([]byte{byte(th.rng.IntN(3))}, len(block)))
		if block[0] != 0 {
			binary.BigEndian.PutUint64(block[th.rng.IntN(len(block)-8):], th.rng.Uint64())
		}
	}
	return b
}

// randomCommand runs one command on the medium and the model.
func randomCommand(rt *rapid.T, th *thread, n *Nexus, size int, model []byte) {
	total := len(model) / size
	lba := rapid.IntRange(0, total-1).Draw(rt, "lba")
	count := min(rapid.SampledFrom([]int{0, 1, 2, 7, 8, 64, 600, 1500}).Draw(rt, "count"), total-lba)
	from, to := lba*size, (lba+count)*size
	part := model[from:to]
	fresh := th.fresh
	a, k := uint64(lba), uint64(count)
	want, status := []byte(nil), Good
	var cdb, out []byte
	var in uint32
	switch rapid.IntRange(0, 10).Draw(rt, "command") {
	case 0:
		cdb, in, want = cdb16(0x88, 0, a, k), uint32(len(part)), bytes.Clone(part)
	case 1:
		cdb, out = cdb16(0x8a, 0x08, a, k), fresh(len(part))
		copy(part, out)
	case 2:
		cdb, out = cdb10(0x2a, 0, a, k), fresh(len(part))
		copy(part, out)
	case 3:
		cdb, out = cdb16(0x8f, 0x02, a, k), bytes.Clone(part)
		if count > 0 && rapid.Bool().Draw(rt, "differ") {
			out[th.rng.IntN(len(out))] ^= 0x10
			status = CheckCondition
		}
	case 4:
		cdb, out = cdb12(0xae, 0x02, a, k), fresh(len(part))
		copy(part, out)
	case 5:
		k = min(k, uint64(n.LU.traits.Load().limits.MaxCompareAndWrite))
		part = part[:k*uint64(size)]
		cdb, out = cdb16(0x89, 0, a, k), append(bytes.Clone(part), fresh(len(part))...)
		if k > 0 && rapid.Bool().Draw(rt, "differ") {
			out[th.rng.IntN(len(part))] ^= 0x10
			status = CheckCondition
		} else {
			copy(part, out[len(part):])
		}
	case 6:
		if count == 0 {
			return
		}
		cdb, out = cdb16(0x93, 0, a, k), fresh(size)
		for i := 0; i < len(part); i += size {
			copy(part[i:], out)
		}
	case 7:
		if count == 0 {
			return
		}
		cdb = cdb16(0x93, 0x09, a, k)
		clear(part)
	case 8:
		out = unmapList([2]uint64{a, k}, [2]uint64{0, 1})
		cdb = unmapCDB(out)
		clear(part)
		clear(model[:size])
	case 9:
		cdb = cdb10(0x35, 0, a, k)
	case 10:
		cdb, out = cdb16(0x8b, 0, a, k), fresh(len(part))
		for i, b := range out {
			part[i] |= b
		}
	}
	x := th.start(n, cdb, out, in).finish()
	if x.c.Status != status || !bytes.Equal(x.in, want) {
		rt.Fatalf("CDB %x: status %02x, expected %02x; sense %+v; %d bytes of Data-In, expected %d",
			cdb, x.c.Status, status, x.c.Sense, len(x.in), len(want))
	}
}
