package scsi

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/protect"
	"lunar/target/scsi/sense"
)

// shieldedUnit is a logical unit with protection information beside a model of
// what its blocks and tuples must be.
type shieldedUnit struct {
	t      *testing.T
	kind   protect.Type
	block  int
	blocks uint64
	i      *initiator
	data   []byte
	tuples []byte
	random *rand.Rand
}

func newShieldedUnit(t *testing.T, kind protect.Type, block int) *shieldedUnit {
	t.Helper()
	u := &shieldedUnit{t: t, kind: kind, block: block, blocks: 1500, random: rand.New(rand.NewPCG(uint64(kind), uint64(block)))}
	ram, err := backstore.NewRAM(int64(u.blocks)*int64(block), block)
	if err != nil {
		t.Fatal(err)
	}
	store, err := protect.Open(protect.Config{Data: ram, Path: filepath.Join(t.TempDir(), "tuples"), Type: kind, Block: block})
	if err != nil {
		t.Fatal(err)
	}
	lu, err := NewLogicalUnit(LUConfig{Name: "shielded", Store: store, BlockSize: block})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	u.data = make([]byte, u.blocks*uint64(block))
	u.tuples = bytes.Repeat([]byte{0xff}, int(u.blocks)*protect.TupleSize)
	u.i = newInitiator(t, lu)
	return u
}

// cdb makes one of 16 bytes, or of 32 for type 2 when it has a protection field.
func (u *shieldedUnit) cdb(op16 byte, field, flags byte, lba, n uint64) []byte {
	be := binary.BigEndian
	if u.kind != protect.Type2 || field == 0 {
		cdb := make([]byte, 16)
		cdb[0], cdb[1] = op16, field<<5|flags
		be.PutUint64(cdb[2:], lba)
		be.PutUint32(cdb[10:], uint32(n))
		return cdb
	}
	cdb := make([]byte, 32)
	cdb[0], cdb[7], cdb[10] = 0x7f, 0x18, field<<5|flags
	cdb[9] = map[byte]byte{0x88: 9, 0x8f: 10, 0x8a: 11, 0x8e: 12, 0x93: 13, 0x9c: 15}[op16]
	be.PutUint64(cdb[12:], lba)
	be.PutUint32(cdb[20:], u.ref(lba))
	be.PutUint32(cdb[28:], uint32(n))
	return cdb
}

// ref is the reference tag that a test gives a block: with type 2 any will do.
func (u *shieldedUnit) ref(lba uint64) uint32 {
	if u.kind == protect.Type2 {
		return uint32(lba) + 1000
	}
	return uint32(lba)
}

// wire makes blocks with tuples for lba, and puts them into the model.
func (u *shieldedUnit) wire(lba, n uint64, store bool) []byte {
	data, tuples := make([]byte, n*uint64(u.block)), make([]byte, n*protect.TupleSize)
	for i := range data {
		data[i] = byte(u.random.Uint32())
	}
	protect.Generate(u.kind, u.block, data, tuples, u.ref(lba))
	for i := 0; i < len(tuples); i += protect.TupleSize {
		binary.BigEndian.PutUint16(tuples[i+2:], uint16(u.random.UintN(0xffff)))
		if u.kind == protect.Type3 { // which leaves reference tags to the initiator
			binary.BigEndian.PutUint32(tuples[i+4:], u.random.Uint32())
		}
	}
	out := make([]byte, len(data)+len(tuples))
	protect.Interleave(out, u.block, data, tuples)
	if store {
		copy(u.data[lba*uint64(u.block):], data)
		copy(u.tuples[lba*protect.TupleSize:], tuples)
	}
	return out
}

func (u *shieldedUnit) expected(lba, n uint64) []byte {
	out := make([]byte, n*uint64(u.block+protect.TupleSize))
	protect.Interleave(out, u.block, u.data[lba*uint64(u.block):(lba+n)*uint64(u.block)], u.tuples[lba*protect.TupleSize:])
	return out
}

func (u *shieldedUnit) send(cdb, out []byte, in int) *loopPort {
	p := u.i.send(cdb, out, uint32(in), u.random.IntN(2) == 0)
	return p
}

func (u *shieldedUnit) good(what string, p *loopPort) {
	u.t.Helper()
	if p.c.Status != Good {
		u.t.Fatalf("%s: found status %v, sense %+v, expected GOOD", what, p.c.Status, p.c.Sense)
	}
}

// check reads with protection information and without, and compares both.
func (u *shieldedUnit) check(lba, n uint64) {
	u.t.Helper()
	wire := u.send(u.cdb(0x88, 3, 0, lba, n), nil, int(n)*(u.block+protect.TupleSize))
	u.good("READ with tuples", wire)
	if want := u.expected(lba, n); !bytes.Equal(wire.in, want) {
		u.t.Fatalf("READ of %d blocks at %d with tuples: differs from byte %d on", n, lba, firstDifference(want, wire.in))
	}
	plain := u.send(u.cdb(0x88, 0, 0, lba, n), nil, int(n)*u.block)
	u.good("READ", plain)
	if want := u.data[lba*uint64(u.block) : (lba+n)*uint64(u.block)]; !bytes.Equal(plain.in, want) {
		u.t.Fatalf("READ of %d blocks at %d: differs", n, lba)
	}
}

func (u *shieldedUnit) extent(most uint64) (lba, n uint64) {
	n = 1 + u.random.Uint64N(most)
	return u.random.Uint64N(u.blocks - n), n
}

// TestShieldedAgainstModel: any writes, with and without tuples, of any size, and
// what is read of them.
func TestShieldedAgainstModel(t *testing.T) {
	for kind := protect.Type1; kind <= protect.Type3; kind++ {
		for _, block := range []int{512, 4096} {
			t.Run(fmt.Sprintf("type %d, %d bytes", kind, block), func(t *testing.T) {
				u := newShieldedUnit(t, kind, block)
				for range 60 {
					u.step()
				}
				for lba := uint64(0); lba < u.blocks; lba += 300 {
					u.check(lba, 300)
				}
			})
		}
	}
}

func (u *shieldedUnit) step() {
	u.t.Helper()
	lba, n := u.extent(1000 * 512 / uint64(u.block))
	switch u.random.IntN(6) {
	case 0:
		out := u.wire(lba, n, true)
		field := []byte{1, 3, 5}[u.random.IntN(3)]
		u.good("WRITE with tuples", u.send(u.cdb(0x8a, field, 0, lba, n), out, 0))
	case 1:
		data := u.data[lba*uint64(u.block) : (lba+n)*uint64(u.block)]
		for i := range data {
			data[i] = byte(u.random.Uint32())
		}
		protect.Generate(u.kind, u.block, data, u.tuples[lba*protect.TupleSize:], uint32(lba))
		u.good("WRITE", u.send(u.cdb(0x8a, 0, 0, lba, n), data, 0))
	case 2:
		out := u.wire(lba, n, true)
		u.good("WRITE AND VERIFY with tuples", u.send(u.cdb(0x8e, 1, 2, lba, n), out, 0))
	case 3:
		u.writeSame(lba, n)
	case 4:
		u.good("VERIFY of the medium", u.send(u.cdb(0x8f, 3, 0, lba, n), nil, 0))
		u.good("VERIFY with tuples", u.send(u.cdb(0x8f, 3, 2, lba, n), u.expected(lba, n), 0))
		wrong := u.expected(lba, n)
		at := u.random.IntN(len(wrong))
		wrong[at] ^= 1
		if p := u.send(u.cdb(0x8f, 3, 2, lba, n), wrong, 0); p.c.Sense == nil || p.c.Sense.Key != sense.Miscompare || p.c.Sense.Info != uint64(at) {
			u.t.Fatalf("VERIFY with a wrong byte %d: found %+v", at, p.c.Sense)
		}
	case 5:
		u.check(lba, n)
	}
}

func (u *shieldedUnit) writeSame(lba, n uint64) {
	u.t.Helper()
	one := u.wire(lba, 1, false)
	u.repeat(lba, n, one)
	u.good("WRITE SAME with a tuple", u.send(u.cdb(0x93, 1, 0, lba, n), one, 0))
}

// repeat puts what WRITE SAME makes of a block with its tuple into the model.
func (u *shieldedUnit) repeat(lba, n uint64, one []byte) {
	for i := range n {
		copy(u.data[(lba+i)*uint64(u.block):], one[:u.block])
		t := protect.Tuple(u.tuples[(lba+i)*protect.TupleSize:])
		ref := u.ref(lba) + uint32(i)
		if u.kind == protect.Type3 {
			ref = protect.Tuple(one[u.block:]).Ref()
		}
		t.Set(protect.Guard(one[:u.block]), protect.Tuple(one[u.block:]).App(), ref)
	}
}

// TestShieldedWriteSameUnmap: a block of zeroes with the tuple of a block that was
// never written is released; any other is written with the tuples that follow from
// it, as without UNMAP.
func TestShieldedWriteSameUnmap(t *testing.T) {
	for kind := protect.Type1; kind <= protect.Type3; kind++ {
		u := newShieldedUnit(t, kind, 512)
		const lba, n, unmap = 40, 100, 0x08
		u.good("WRITE", u.send(u.cdb(0x8a, 1, 0, lba, n), u.wire(lba, n, true), 0))
		one := u.wire(lba, 1, false)
		u.repeat(lba, n, one)
		u.good("of data", u.send(u.cdb(0x93, 1, unmap, lba, n), one, 0))
		u.check(lba, n)
		clear(one)
		for i := range protect.TupleSize {
			one[512+i] = 0xff
		}
		u.good("of zeroes", u.send(u.cdb(0x93, 1, unmap, lba, n), one, 0))
		got := u.send(u.cdb(0x88, 3, 0, lba, n), nil, n*520)
		if u.good("READ", got); !bytes.Equal(got.in, bytes.Repeat(one, n)) {
			t.Errorf("type %d: the blocks are not as if they had never been written", kind)
		}
		clear(u.data[lba*512:][:n*512])
		p := u.send(u.cdb(0x93, 1, unmap, lba, n), one[:512], 0)
		if p.c.Sense == nil || *p.c.Sense != *sense.InvalidFieldInIU {
			t.Errorf("type %d: without the tuple: %+v", kind, p.c.Sense)
		}
	}
}

// TestShieldedRefusals: wrong tuples are refused with the block, in the order of
// guard, application tag and reference tag, and change nothing.
func TestShieldedRefusals(t *testing.T) {
	for kind := protect.Type1; kind <= protect.Type3; kind++ {
		u := newShieldedUnit(t, kind, 512)
		u.good("WRITE", u.send(u.cdb(0x8a, 1, 0, 10, 8), u.wire(10, 8, true), 0))
		for _, c := range []struct {
			name   string
			field  byte
			offset int       // of the byte that is wrong, from the tuple's begin
			asc    sense.ASC // 0: nobody looks at it
		}{
			{"guard", 1, 0, ASCGuardCheckFailed},
			{"guard, not checked", 2, 1, 0},
			{"guard, nothing checked", 3, 1, 0},
			{"guard alone", 4, 1, ASCGuardCheckFailed},
			{"reference tag", 1, 7, ASCGuardCheckFailed + 2},
			{"reference tag, without guard", 2, 4, ASCGuardCheckFailed + 2},
			{"reference tag, guard alone", 4, 4, 0},
		} {
			if kind == protect.Type3 && c.asc > ASCGuardCheckFailed {
				continue // nobody knows what it must be
			}
			out := u.wire(10, 8, c.asc == 0)
			const bad = 3
			out[bad*520+512+c.offset] ^= 0x10
			if c.asc == 0 {
				u.tuples[(10+bad)*protect.TupleSize+uint64(c.offset)] ^= 0x10
			}
			p := u.send(u.cdb(0x8a, c.field, 0, 10, 8), out, 0)
			switch {
			case c.asc == 0:
				u.good(c.name, p)
			case p.c.Sense == nil || p.c.Sense.Key != sense.AbortedCommand || p.c.Sense.ASC != c.asc || p.c.Sense.Info != 10+bad:
				t.Errorf("type %d, %s: found %+v, expected %04x for block %d", kind, c.name, p.c.Sense, uint16(c.asc), 10+bad)
			}
			got := u.send(u.cdb(0x88, 3, 0, 10, 8), nil, 8*520)
			if u.good(c.name, got); !bytes.Equal(got.in, u.expected(10, 8)) {
				t.Errorf("type %d, %s: the medium is not what it was", kind, c.name)
			}
			u.good("WRITE", u.send(u.cdb(0x8a, 1, 0, 10, 8), u.wire(10, 8, true), 0))
		}
	}
}

// TestProtectionFieldIsRefused where there is no protection information, for type 2
// outside of 32-byte CDBs, and with reserved values.
func TestProtectionFieldIsRefused(t *testing.T) {
	plain := newThread(t, newMedium(1<<20), 1)
	n := newUnit(t, plain.medium, LUConfig{})
	n.takeAttention()
	lu := n.LU
	for _, c := range []struct {
		name string
		cdb  []byte
		send func(cdb []byte) *sense.Data
		want sense.ASC
	}{
		{"no protection", []byte{0x28, 0x20, 8: 1}, nil, sense.ASCInvalidFieldInCDB},
		{"type 2, 10 bytes", []byte{0x28, 0x20, 8: 1}, newShieldedUnit(t, protect.Type2, 512).sense, sense.ASCInvalidOpcode},
		{"reserved", []byte{0x28, 0xe0, 8: 1}, newShieldedUnit(t, protect.Type1, 512).sense, sense.ASCInvalidFieldInCDB},
		{"READ(32) of type 1", []byte{0x7f, 7: 0x18, 9: 9, 31: 1}, newShieldedUnit(t, protect.Type1, 512).sense, sense.ASCInvalidOpcode},
		{"unknown action", []byte{0x7f, 7: 0x18, 9: 31, 31: 1}, newShieldedUnit(t, protect.Type2, 512).sense, sense.ASCInvalidFieldInCDB},
		{"another length", []byte{0x7f, 7: 0x10, 9: 9, 31: 1}, newShieldedUnit(t, protect.Type2, 512).sense, sense.ASCInvalidFieldInCDB},
	} {
		if c.send == nil {
			c.send = func(cdb []byte) *sense.Data { return refusal(t, lu, n, cdb) }
		}
		if s := c.send(c.cdb); s == nil || s.ASC != c.want {
			t.Errorf("%s: found %+v, expected %04x", c.name, s, uint16(c.want))
		}
	}
}

func (u *shieldedUnit) sense(cdb []byte) *sense.Data {
	return u.send(cdb, nil, 520).c.Sense
}

// refusal decodes a CDB that is not to run.
func refusal(t *testing.T, lu *LogicalUnit, n *Nexus, cdb []byte) *sense.Data {
	t.Helper()
	c := &Command{Nexus: n}
	copy(c.CDB[:], cdb)
	if s := c.decode(); s != nil {
		return s
	}
	return lu.admit(c)
}

// TestProtectionIsTold: INQUIRY, READ CAPACITY, VPD 86h, the control mode page and
// REPORT SUPPORTED OPERATION CODES agree.
func TestProtectionIsTold(t *testing.T) {
	for kind, want := range map[protect.Type]struct{ capacity, extended byte }{
		protect.Type1: {0x01, 0x07}, protect.Type2: {0x03, 0x17}, protect.Type3: {0x05, 0x27},
	} {
		u := newShieldedUnit(t, kind, 512)
		inquiry := u.send([]byte{0x12, 4: 96}, nil, 96).in
		capacity := u.send([]byte{0x9e, 0x10, 13: 32}, nil, 32).in
		extended := u.send([]byte{0x12, 1, 0x86, 4: 64}, nil, 64).in
		control := u.send([]byte{0x5a, 0x08, 0x0a, 8: 255}, nil, 255).in
		if inquiry[5]&1 == 0 || capacity[12] != want.capacity || extended[4] != want.extended || control[8+5]&0x80 == 0 {
			t.Errorf("type %d: INQUIRY %02x, capacity %02x, extended INQUIRY %02x, control page %02x", kind, inquiry[5], capacity[12], extended[4], control[8+5])
		}
		usage := u.send([]byte{0xa3, 0x0c, 1, 0x28, 9: 64}, nil, 64).in
		if shown := usage[4+1]&0xe0 != 0; shown != (kind != protect.Type2) {
			t.Errorf("type %d: READ(10) reports usage %02x", kind, usage[5])
		}
		long := u.send([]byte{0xa3, 0x0c, 2, 0x7f, 0, 9, 9: 64}, nil, 64).in
		if kind == protect.Type2 && (long[1] != 3 || long[4+7] != 0x18 || long[4+9] != 9 || long[4+10]&0xe0 != 0xe0) || kind != protect.Type2 && long[1] != 1 {
			t.Errorf("type %d: READ(32) reports %x", kind, long)
		}
	}
}

// TestDamageFailsCommands: what the store finds is told as the standard words it.
func TestDamageFailsCommands(t *testing.T) {
	u := newShieldedUnit(t, protect.Type1, 512)
	u.good("WRITE", u.send(u.cdb(0x8a, 0, 0, 0, 8), u.data[:8*512], 0))
	store := u.i.nexus.LU.Store()
	wrong := make([]byte, 512)
	wrong[5] = 1
	c := backstoretest.NewClient(t, store, u.i.loop)
	tuples := make([]byte, 8)
	protect.Generate(protect.Type1, 512, u.data[:512], tuples, 3)
	if err := c.Do(backstore.Op{Kind: backstore.Write, Off: 3 * 512, Data: wrong, Tuples: tuples}); err != nil {
		t.Fatal(err)
	}
	p := u.send(u.cdb(0x88, 0, 0, 0, 8), nil, 8*512)
	if s := p.c.Sense; s == nil || s.Key != sense.AbortedCommand || s.ASC != ASCGuardCheckFailed || s.Info != 3 {
		t.Errorf("found %+v, expected LOGICAL BLOCK GUARD CHECK FAILED of block 3", s)
	}
}
