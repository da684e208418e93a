package scsi

import (
	"bytes"
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"

	"lunar/backstore"
	"lunar/target/scsi/sense"
	"lunar/target/scsi/thirdparty"
)

// rangesList is a parameter list's range descriptors, of LBA and blocks.
func rangesList(ranges [][2]uint64) (list []byte) {
	for _, r := range ranges {
		list = binary.BigEndian.AppendUint64(list, r[0])
		list = binary.BigEndian.AppendUint32(list, uint32(r[1]))
		list = append(list, 0, 0, 0, 0)
	}
	return list
}

func populateList(ranges ...[2]uint64) []byte {
	be, d := binary.BigEndian, rangesList(ranges)
	l := append(make([]byte, populateHeader), d...)
	be.PutUint16(l, uint16(len(l)-2))
	be.PutUint16(l[14:], uint16(len(d)))
	return l
}

func writeTokenList(token []byte, flags byte, skip uint64, ranges ...[2]uint64) []byte {
	be, d := binary.BigEndian, rangesList(ranges)
	l := append(make([]byte, writeTokenHeader), d...)
	l[2] = flags
	be.PutUint16(l, uint16(len(l)-2))
	be.PutUint64(l[8:], skip)
	copy(l[16:], token)
	be.PutUint16(l[534:], uint16(len(d)))
	return l
}

// tokenCDB is POPULATE TOKEN (10h) or WRITE USING TOKEN (11h).
func tokenCDB(action byte, id uint32, list []byte) []byte {
	cdb := copyCDB(action, list)
	binary.BigEndian.PutUint32(cdb[6:], id)
	return cdb
}

// populate returns a token for the ranges.
func (th *thread) populate(n *Nexus, ranges ...[2]uint64) []byte {
	th.t.Helper()
	list := populateList(ranges...)
	if x := th.start(n, tokenCDB(0x10, 1, list), list, 0).finish(); x.c.Status != Good {
		th.t.Fatalf("POPULATE TOKEN: status %02x, sense %+v", x.c.Status, x.c.Sense)
	}
	info := th.rodInformation(n, 1)
	if len(info) != 32+4+2+thirdparty.TokenLength {
		th.t.Fatalf("%d bytes of ROD TOKEN INFORMATION", len(info))
	}
	return info[38:]
}

func (th *thread) rodInformation(n *Nexus, id uint32) []byte {
	th.t.Helper()
	x := th.start(n, receiveCDB(0x07, id), nil, 1024).finish()
	if x.c.Status != Good {
		th.t.Fatalf("RECEIVE ROD TOKEN INFORMATION: sense %+v", x.c.Sense)
	}
	return x.in
}

func (th *thread) writeToken(n *Nexus, list []byte) *exchange {
	return th.start(n, tokenCDB(0x11, 2, list), list, 0).finish()
}

// TestTokensAgainstModel: whatever is written by tokens, in pieces of any
// shape, from and to units of any block length, the media are what copying the
// bytes of a model at the time of POPULATE TOKEN gives; or the token was
// revoked, and then something had changed.
func TestTokensAgainstModel(t *testing.T) {
	filler, _, _ := copyUnits(t, 1)
	fill := filler.fresh(4 << 20) // once: it takes long
	rapid.Check(t, func(rt *rapid.T) {
		th, n, m := copyUnits(t, rapid.Uint64().Draw(rt, "seed"))
		th.starve = rapid.IntRange(0, 60).Draw(rt, "starve")
		th.part = rapid.SampledFrom([]int64{0, 64 << 10, 8 << 10}).Draw(rt, "part")
		th.defers = rapid.IntRange(0, 100).Draw(rt, "defers")
		var model [2][]byte
		for i := range m {
			copy(m[i].mu.bytes, fill[i<<20:])
			model[i] = bytes.Clone(m[i].mu.bytes)
		}
		source, dest := rapid.IntRange(0, 1).Draw(rt, "source"), rapid.IntRange(0, 1).Draw(rt, "dest")
		const grain = 4096 // in which all lies, as file systems do it
		draw := func(unit, areas int, from, to int) (ranges [][2]uint64, at [][2]int) {
			width := (to - from) / areas &^ (grain - 1)
			for i := range areas {
				off := from + i*width + rapid.IntRange(0, width/grain/2).Draw(rt, "off")*grain
				n := rapid.IntRange(0, width/grain/2).Draw(rt, "n") * grain
				ranges = append(ranges, [2]uint64{uint64(off / unit), uint64(n / unit)})
				at = append(at, [2]int{off, n})
			}
			return ranges, at
		}
		const half = 1 << 20 // sources lie before it, destinations behind
		ranges, from := draw(n[source].LU.config.BlockSize, rapid.IntRange(1, 4).Draw(rt, "ranges"), 0, half)
		var rod []byte
		for _, r := range from {
			rod = append(rod, model[source][r[0]:][:r[1]]...)
		}
		if len(rod) == 0 {
			th.pool.Close()
			return
		}
		token := th.populate(n[source], ranges...)
		disturbed := rapid.Bool().Draw(rt, "disturbed")
		if disturbed {
			off := rapid.IntRange(0, half/grain-1).Draw(rt, "disturbance") * grain
			block := th.fresh(grain)
			th.start(n[source], cdb10(0x2a, 0, uint64(off/n[source].LU.config.BlockSize), uint64(grain/n[source].LU.config.BlockSize)), block, 0).finish()
			copy(model[source][off:], block)
			disturbed = false
			for _, r := range from {
				disturbed = disturbed || off >= r[0] && off < r[0]+r[1]
			}
		}
		unit := n[dest].LU.config.BlockSize
		to, places := draw(unit, rapid.IntRange(1, 4).Draw(rt, "pieces"), half, len(model[dest]))
		skip := rapid.IntRange(0, len(rod)/grain-1).Draw(rt, "skip") * grain
		x := th.writeToken(n[dest], writeTokenList(token, 0, uint64(skip/unit), to...))
		left, moved := rod[skip:], 0
		if disturbed {
			if x.c.Sense != sense.TokenRevoked {
				rt.Fatalf("status %02x, sense %+v of a token whose blocks have changed", x.c.Status, x.c.Sense)
			}
		} else {
			if x.c.Status != Good {
				rt.Fatalf("status %02x, sense %+v", x.c.Status, x.c.Sense)
			}
			want := 0
			for _, p := range places {
				k := copy(model[dest][p[0]:][:p[1]], left)
				left, moved, want = left[k:], moved+k, want+p[1]
			}
			info := th.rodInformation(n[dest], 2)
			if got := binary.BigEndian.Uint64(info[16:]); got != uint64(moved/unit) || info[15] != 0xf1 || (info[5] == 3) != (moved < want) {
				rt.Fatalf("% x, expected %d blocks of %d", info[:32], moved/unit, want/unit)
			}
		}
		for i := range m {
			if !bytes.Equal(model[i], m[i].mu.bytes) {
				rt.Fatalf("medium %d is not what the model is", i)
			}
		}
		th.pool.Close()
	})
}

// TestTokenRevoked: every kind of change revokes the token of its blocks, and
// no other one.
func TestTokenRevoked(t *testing.T) {
	block, zeroes := bytes.Repeat([]byte{7}, 512), make([]byte, 1024)
	changes := map[string]struct{ cdb, out []byte }{
		"WRITE":             {cdb10(0x2a, 0, 10, 1), block},
		"WRITE AND VERIFY":  {cdb10(0x2e, 0, 10, 1), block},
		"WRITE SAME":        {cdb10(0x41, 0, 9, 2), block},
		"WRITE SAME zeroes": {cdb10(0x41, 0, 9, 2), zeroes[:512]},
		"UNMAP":             {[]byte{0x42, 0, 0, 0, 0, 0, 0, 0, 24, 0}, unmapList([2]uint64{10, 1})},
		"COMPARE AND WRITE": {func() []byte { c := cdb16(0x89, 0, 10, 0); c[13] = 1; return c }(), zeroes},
	}
	for name, change := range changes {
		th, n, _ := copyUnits(t, 1)
		token := th.populate(n[0], [2]uint64{8, 4})
		other := th.populate(n[0], [2]uint64{16, 4}, [2]uint64{0, 4})
		if x := th.start(n[0], change.cdb, change.out, 0).finish(); x.c.Status != Good {
			t.Fatalf("%s: %+v", name, x.c.Sense)
		}
		if x := th.writeToken(n[0], writeTokenList(token, 0, 0, [2]uint64{100, 4})); x.c.Sense != sense.TokenRevoked {
			t.Errorf("%s: status %02x, sense %+v, expected TOKEN REVOKED", name, x.c.Status, x.c.Sense)
		}
		if x := th.writeToken(n[0], writeTokenList(other, 0, 0, [2]uint64{100, 8})); x.c.Status != Good {
			t.Errorf("%s: sense %+v of a token that it is not about", name, x.c.Sense)
		}
	}
	th, n, m := copyUnits(t, 1)
	token := th.populate(n[0], [2]uint64{6000, 4})
	m[0].info.Size = 2 << 20
	n[0].LU.tokens.Changing(2<<20, 1<<40)
	if x := th.writeToken(n[1], writeTokenList(token, 0, 0, [2]uint64{0, 1})); x.c.Status != CheckCondition {
		t.Error("a token for what is behind the end")
	}
}

// TestTokenAndWritesUnderWay: POPULATE TOKEN ends after the writes that were
// under way, so that the token stands for what they wrote; a write that begins
// while a copy reads by the token ends the copy.
func TestTokenAndWritesUnderWay(t *testing.T) {
	for seed := range uint64(200) {
		th, n, m := copyUnits(t, seed)
		th.defers = 100
		data := th.fresh(64 << 10)
		write := th.start(n[0], cdb10(0x2a, 0, 0, 128), data, 0)
		list := populateList([2]uint64{0, 128})
		populate := th.start(n[0], tokenCDB(0x10, 1, list), list, 0)
		for populate.ends == 0 && th.turn() {
		}
		if o, made := populate.c.feature.(*copyOperation); write.ends == 0 && made && o.fresh != nil && !o.fresh.Revoked() &&
			!bytes.Equal(m[0].mu.bytes[:len(data)], data) {
			t.Fatalf("seed %d: a token that a write under way has not revoked", seed)
		}
		th.finishAll()
		token := th.rodInformation(n[0], 1)[38:]
		before := bytes.Clone(m[0].mu.bytes[:len(data)])
		w := writeTokenList(token, 0, 0, [2]uint64{0, 16})
		x := th.start(n[1], tokenCDB(0x11, 2, w), w, 0)
		for range seed % 8 {
			th.turn()
		}
		th.start(n[0], cdb10(0x2a, 0, 64, 1), data[:512], 0)
		th.finishAll()
		switch {
		case x.c.Status == Good && !bytes.Equal(m[1].mu.bytes[:len(data)], before):
			t.Fatalf("seed %d: GOOD for data of after the token", seed)
		case x.c.Status != Good && x.c.Sense != sense.TokenRevoked:
			t.Fatalf("seed %d: sense %+v", seed, x.c.Sense)
		}
	}
}

// TestTokenLife: deleted tokens are unknown, and there is
// room for so many.
func TestTokenLife(t *testing.T) {
	th, n, _ := copyUnits(t, 1)
	tokens := &n[0].LU.tokens
	token := th.populate(n[0], [2]uint64{0, 8})
	use := func(flags byte) *sense.Data {
		return th.writeToken(n[1], writeTokenList(token, flags, 0, [2]uint64{0, 1})).c.Sense
	}
	if s := use(0); s != nil {
		t.Fatalf("%+v", s)
	}
	if s := use(rodDelete); s != nil {
		t.Errorf("%+v", s)
	}
	if s := use(0); s != sense.TokenUnknown || tokens.Find(token) != nil {
		t.Errorf("%+v of a token that was deleted", s)
	}
	for i := range thirdparty.MaxTokens {
		token = th.populate(n[0], [2]uint64{uint64(i), 1})
	}
	list := populateList([2]uint64{0, 1})
	if x := th.start(n[0], tokenCDB(0x10, 1, list), list, 0).finish(); x.c.Sense != sense.InsufficientResourcesForToken {
		t.Errorf("%+v of one token too many", x.c.Sense)
	}
	tokens.Changing(0, 512)
	th.populate(n[0], [2]uint64{0, 1}) // in place of the one revoked
}

// TestZeroToken: the block device zero ROD token, also where the store cannot
// zero.
func TestZeroToken(t *testing.T) {
	zero := make([]byte, thirdparty.TokenLength)
	copy(zero, []byte{0xff, 0xff, 0, 1, 0, 0, 0x01, 0xf8})
	for _, able := range []bool{true, false} {
		th, n, m := copyUnits(t, 1)
		copy(m[0].mu.bytes, bytes.Repeat([]byte{1}, len(m[0].mu.bytes)))
		m[0].fail = func(op *backstore.Op) error {
			if op.Kind == backstore.WriteZeroes && !able {
				return backstore.ErrUnsupported
			}
			return nil
		}
		want := bytes.Clone(m[0].mu.bytes)
		clear(want[512:][:2<<20])
		clear(want[(2<<20)+4096:][:512])
		if x := th.writeToken(n[0], writeTokenList(zero, 0, 0, [2]uint64{1, 4096}, [2]uint64{4104, 1})); x.c.Status != Good {
			t.Fatalf("%+v", x.c.Sense)
		}
		if !bytes.Equal(m[0].mu.bytes, want) {
			t.Errorf("not zeroed where the store is able to: %v", able)
		}
	}
}

// TestTokenAsWindowsSends: the bytes of both commands and of the answers.
func TestTokenAsWindowsSends(t *testing.T) {
	th, n, m := copyUnits(t, 1)
	copy(m[0].mu.bytes, th.fresh(len(m[0].mu.bytes)))
	cdb := []byte{0x83, 0x10, 0, 0, 0, 0, 0, 0, 0x12, 0x34, 0, 0, 0, 32, 0, 0}
	list := []byte{0, 30, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 16, 0, 0, 0, 0}
	if x := th.start(n[0], cdb, list, 0).finish(); x.c.Status != Good {
		t.Fatalf("%+v", x.c.Sense)
	}
	info := th.rodInformation(n[0], 0x1234)
	want := []byte{0, 0, 0x02, 0x22, 0x10, 0x01, 0, 0, 0xff, 0xff, 0xff, 0xfe, 0, 0, 0, 0xf1, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0x02, 0, 0}
	if !bytes.Equal(info[:38], want) {
		t.Errorf("% x, expected\n% x", info[:38], want)
	}
	token := info[38:]
	header := append([]byte{0, 0x80, 0, 1, 0, 0, 0x01, 0xf8}, token[8:16]...)
	header = append(header, 0xe4, 0, 0, 0, 1, 3, 0, 8)
	if !bytes.Equal(token[:24], header) || binary.BigEndian.Uint64(token[56:]) != 16*512 || binary.BigEndian.Uint32(token[96:]) != 512 {
		t.Errorf("token % x", token[:128])
	}
	cdb = []byte{0x83, 0x11, 0, 0, 0, 0, 0, 0, 0x12, 0x35, 0, 0, 0x02, 0x28, 0, 0}
	write := append([]byte{0x02, 0x26, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, token...)
	write = append(write, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 16, 0, 0, 0, 0)
	if x := th.start(n[0], cdb, write, 0).finish(); x.c.Status != Good {
		t.Fatalf("%+v", x.c.Sense)
	}
	if !bytes.Equal(m[0].mu.bytes[8*512:][:16*512], m[0].mu.bytes[256*512:][:16*512]) {
		t.Error("not copied")
	}
	if got := th.rodInformation(n[0], 0x1235); !bytes.Equal(got[:6], []byte{0, 0, 0, 0x20, 0x11, 0x01}) || got[23] != 16 || len(got) != 36 {
		t.Errorf("% x", got)
	}
}

// TestTokenRefusals: what is wrong with a list is found before anything is
// written.
func TestTokenRefusals(t *testing.T) {
	th, n, m := copyUnits(t, 1)
	n[1].ReadOnly.Store(false)
	token := th.populate(n[0], [2]uint64{0, 8})
	odd := th.populate(n[0], [2]uint64{0, 3}, [2]uint64{100, 13})
	changed := func(b []byte, at int, to byte) []byte {
		b = bytes.Clone(b)
		b[at] = to
		return b
	}
	good, one := writeTokenList(token, 0, 0, [2]uint64{0, 1}), [2]uint64{0, 1}
	many := make([][2]uint64, thirdparty.MaxRanges+1)
	for i := range many {
		many[i] = [2]uint64{uint64(i), 1}
	}
	for name, test := range map[string]struct {
		action byte
		list   []byte
		asc    sense.ASC
	}{
		"no ranges":       {0x10, populateList()[:16], sense.ASCParameterListLengthError},
		"short":           {0x10, populateList(one)[:20], sense.ASCParameterListLengthError},
		"data length":     {0x10, changed(populateList(one), 1, 10), sense.ASCInvalidFieldInList},
		"ranges length":   {0x10, changed(populateList(one), 15, 32), sense.ASCInvalidFieldInList},
		"timeout":         {0x10, changed(populateList(one), 4, 1), sense.ASCInvalidFieldInList},
		"type":            {0x10, changed(populateList(one), 2, rodTypeValid), sense.ASCInvalidFieldInList},
		"nothing":         {0x10, populateList([2]uint64{0, 0}), sense.ASCInvalidFieldInList},
		"beyond":          {0x10, populateList([2]uint64{511, 2}), sense.ASCLBAOutOfRange},
		"far beyond":      {0x10, populateList([2]uint64{1<<64 - 1, 2}), sense.ASCLBAOutOfRange},
		"twice":           {0x10, populateList([2]uint64{3, 4}, [2]uint64{0, 4}), sense.ASCInvalidFieldInList},
		"many":            {0x10, populateList(many...), sense.ASCTooManySegmentDescriptors},
		"unknown":         {0x11, changed(good, 16+511, good[16+511]+1), sense.ASCTokenUnknown},
		"length of token": {0x11, changed(good, 16+7, 0), sense.ASCInvalidTokenLength},
		"type of token":   {0x11, changed(good, 16+3, 0x02), sense.ASCUnsupportedTokenType},
		"offset":          {0x11, writeTokenList(token, 0, 1, one), sense.ASCInvalidFieldInList},
		"far offset":      {0x11, writeTokenList(token, 0, 1<<63, one), sense.ASCInvalidFieldInList},
		"beyond here":     {0x11, writeTokenList(token, 0, 0, [2]uint64{512, 1}), sense.ASCLBAOutOfRange},
		"many here":       {0x11, writeTokenList(token, 0, 0, many...), sense.ASCTooManySegmentDescriptors},
		"parts of blocks": {0x11, writeTokenList(odd, 0, 0, one), sense.ASCInvalidTokenOperation},
	} {
		x := th.start(n[1], tokenCDB(test.action, 9, test.list), test.list, 0).finish()
		if s := x.c.Sense; s == nil || s.Key != sense.IllegalRequest || s.ASC != test.asc {
			t.Errorf("%s: status %02x, sense %+v, expected %04x", name, x.c.Status, s, test.asc)
		}
	}
	over := writeTokenList(token, 0, 0, [2]uint64{4, 8})
	if x := th.writeToken(n[0], over); x.c.Sense != sense.InvalidTokenOperation {
		t.Errorf("over its own blocks: %+v", x.c.Sense)
	}
	n[1].ReadOnly.Store(true)
	if x := th.writeToken(n[1], good); x.c.Sense != sense.WriteProtected {
		t.Errorf("write protected: %+v", x.c.Sense)
	}
	th.reach = n[1:]
	if x := th.writeToken(n[0], writeTokenList(token, 0, 0, [2]uint64{100, 8})); x.c.Sense != sense.TokenUnknown {
		t.Errorf("of a unit that the initiator has no access to: %+v", x.c.Sense)
	}
	for i := range m {
		for _, op := range m[i].ops() {
			if changes(op.Kind) {
				t.Fatal("something was written")
			}
		}
	}
}

// TestTokenOfAClosingUnit: a token whose unit is being closed stands for nothing. It
// does not stand for the same blocks of the unit that is looked at next.
func TestTokenOfAClosingUnit(t *testing.T) {
	th, n, m := copyUnits(t, 1)
	copy(m[0].mu.bytes, th.fresh(len(m[0].mu.bytes)))
	copy(m[1].mu.bytes, th.fresh(len(m[1].mu.bytes)))
	was := bytes.Clone(m[1].mu.bytes)
	token := th.populate(n[0], [2]uint64{0, 256})
	th.closing = n[0]
	if x := th.writeToken(n[1], writeTokenList(token, 0, 0, [2]uint64{64, 8})); x.c.Sense != sense.TokenUnknown {
		t.Errorf("found status %02x, sense %+v, expected %+v", x.c.Status, x.c.Sense, sense.TokenUnknown)
	}
	if !bytes.Equal(m[1].mu.bytes, was) {
		t.Error("something was written")
	}
}

// TestTokenInTheBackground: with IMMED the copy goes on after the status, and
// RECEIVE ROD TOKEN INFORMATION tells how far it is.
func TestTokenInTheBackground(t *testing.T) {
	th, n, m := copyUnits(t, 1)
	copy(m[0].mu.bytes, th.fresh(len(m[0].mu.bytes)))
	token := th.populate(n[0], [2]uint64{0, 4096})
	th.defers = 100
	list := writeTokenList(token, rodImmediate|rodDelete, 0, [2]uint64{0, 512})
	x := th.start(n[1], tokenCDB(0x11, 2, list), list, 0)
	for x.ends == 0 {
		th.turn()
	}
	if info := th.start(n[1], receiveCDB(0x07, 2), nil, 1024); info.in[5] != inBackground || x.c.Status != Good {
		t.Errorf("status %02x; % x", x.c.Status, info.in)
	}
	th.finishAll()
	if info := th.rodInformation(n[1], 2); info[5] != 1 || binary.BigEndian.Uint64(info[16:]) != 512 {
		t.Errorf("% x", info[:32])
	}
	if !bytes.Equal(m[1].mu.bytes, m[0].mu.bytes[:2<<20]) || n[0].LU.tokens.Find(token) != nil {
		t.Error("not copied, or the token is still there")
	}
}

// FuzzTokenLists: no list makes a panic, or leaves the medium.
func FuzzTokenLists(f *testing.F) {
	zero := make([]byte, thirdparty.TokenLength)
	copy(zero, []byte{0xff, 0xff, 0, 1, 0, 0, 0x01, 0xf8})
	f.Add(byte(0), populateList([2]uint64{0, 8}, [2]uint64{100, 8}))
	f.Add(byte(1), writeTokenList(zero, 0, 0, [2]uint64{0, 8}))
	f.Fuzz(func(t *testing.T, action byte, list []byte) {
		if len(list) > 4096 {
			return
		}
		th, n, _ := copyUnits(t, 1)
		x := th.start(n[0], tokenCDB(0x10+action%2, 1, list), list, 0).finish()
		if x.c.Status != Good && x.c.Sense == nil {
			t.Errorf("status %02x without sense data", x.c.Status)
		}
	})
}
