package pdu

import (
	"bytes"
	"encoding/binary"
	"errors"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestWireLength(t *testing.T) {
	for _, c := range []struct {
		ahs, data    int
		header, body bool
		want         int
	}{
		{0, 0, false, false, 48},
		{0, 0, true, true, 52},
		{8, 0, true, true, 60},
		{0, 1, false, false, 52},
		{0, 1, false, true, 56},
		{0, 4096, true, true, 48 + 4 + 4096 + 4},
		{MaxAHSLength, MaxDataSegmentLength, true, true, 48 + 1020 + 4 + 1<<24 + 4},
	} {
		var b BHS
		b.SetTotalAHSLength(c.ahs)
		b.SetDataSegmentLength(c.data)
		if got := b.WireLength(c.header, c.body); got != c.want {
			t.Errorf("AHS %d, data %d, digests %v %v: %d bytes, expected %d", c.ahs, c.data, c.header, c.body, got, c.want)
		}
	}
}

func TestPadding(t *testing.T) {
	for n, want := range []int{0, 3, 2, 1, 0, 3} {
		if got := Padding(n); got != want || len(ZeroPadding(n)) != want {
			t.Errorf("Padding(%d) = %d, expected %d", n, got, want)
		}
	}
}

func TestSerialNumbers(t *testing.T) {
	for _, c := range []struct {
		a, b SN
		less bool
	}{
		{0, 0, false},
		{0, 1, true},
		{1, 0, false},
		{0xffffffff, 0, true},
		{0, 0xffffffff, false},
		{0, 0x7fffffff, true},
		{0, 0x80000000, false}, // undefined by RFC 1982
		{0x80000000, 0, false},
		{0, 0x80000001, false},
		{0x80000001, 0, true},
	} {
		if got := c.a.LessThan(c.b); got != c.less {
			t.Errorf("%#x.LessThan(%#x) = %v", c.a, c.b, got)
		}
	}
}

func TestInWindow(t *testing.T) {
	for _, c := range []struct {
		sn, first, last SN
		in              bool
	}{
		{5, 5, 5, true},
		{4, 5, 5, false},
		{6, 5, 5, false},
		{5, 5, 4, false}, // closed
		{4, 5, 4, false},
		{0xffffffff, 0xfffffff0, 0x10, true},
		{0x10, 0xfffffff0, 0x10, true},
		{0x11, 0xfffffff0, 0x10, false},
		{0xffffffef, 0xfffffff0, 0x10, false},
		{0, 0, 0xffffffff, false}, // closed at the wrap
	} {
		if got := c.sn.InWindow(c.first, c.last); got != c.in {
			t.Errorf("%#x.InWindow(%#x, %#x) = %v", c.sn, c.first, c.last, got)
		}
	}
}

func TestSerialArithmeticProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := SN(rapid.Uint32().Draw(t, "a"))
		n := rapid.Uint32Range(1, half-1).Draw(t, "n")
		b := a.Add(n)
		if !a.LessThan(b) || b.LessThan(a) || !a.LessEq(b) || b.LessEq(a) || !a.LessEq(a) {
			t.Fatalf("%#x and %#x are out of order", a, b)
		}
		if b.Sub(a) != int32(n) || a.Sub(b) != -int32(n) {
			t.Fatalf("distance of %#x and %#x", a, b)
		}
		x := SN(rapid.Uint32().Draw(t, "x"))
		if x.InWindow(a, b) != (uint64(x-a) <= uint64(n)) {
			t.Fatalf("%#x in [%#x, %#x]", x, a, b)
		}
	})
}

// TestDigestVectors checks the examples of RFC 7143 appendix A.4 (of RFC 3720
// B.4), as bytes on the wire.
func TestDigestVectors(t *testing.T) {
	up, down := make([]byte, 32), make([]byte, 32)
	for i := range up {
		up[i], down[i] = byte(i), byte(31-i)
	}
	read := new(SCSICommand)
	*read = SCSICommand{0: 0x01, 1: 0xc0, 16: 0x14, 22: 0x04, 27: 0x14, 31: 0x18, 32: 0x28, 40: 0x02}
	for _, c := range []struct {
		name string
		data []byte
		want []byte
	}{
		{"zeros", make([]byte, 32), []byte{0xaa, 0x36, 0x91, 0x8a}},
		{"ones", bytes.Repeat([]byte{0xff}, 32), []byte{0x43, 0xab, 0xa8, 0x62}},
		{"incrementing", up, []byte{0x4e, 0x79, 0xdd, 0x46}},
		{"decrementing", down, []byte{0x5c, 0xdb, 0x3f, 0x11}},
		{"READ(10)", read[:], []byte{0x56, 0x3a, 0x96, 0xd9}},
	} {
		d := DataDigest(c.data, nil)
		if got := d.Append(nil); !bytes.Equal(got, c.want) {
			t.Errorf("%s: % x, expected % x", c.name, got, c.want)
		}
		if ReadDigest(c.want) != d {
			t.Errorf("%s: ReadDigest differs", c.name)
		}
	}
	if HeaderDigest(read.BHS(), nil) != DataDigest(read[:], nil) {
		t.Error("header digest is not the digest of the header's bytes")
	}
}

func TestDigestOfPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "data")
		cut := rapid.IntRange(0, len(data)).Draw(t, "cut")
		whole := append(bytes.Clone(data), ZeroPadding(len(data))...)
		pieces := Digest(0).Update(data[:cut]).Update(data[cut:]).Update(ZeroPadding(len(data)))
		if pieces != DataDigest(whole, nil) || pieces != DataDigest(data, ZeroPadding(len(data))) {
			t.Fatal("digest depends on how the data is cut")
		}
		var wire [DigestLength]byte
		pieces.Put(wire[:])
		if ReadDigest(wire[:]) != pieces {
			t.Fatal("digest does not survive the wire")
		}
	})
}

func TestSense(t *testing.T) {
	sense := []byte{0x70, 0, 5}
	segment := AppendSense(nil, sense)
	if want := []byte{0, 3, 0x70, 0, 5}; !bytes.Equal(segment, want) {
		t.Fatalf("% x, expected % x", segment, want)
	}
	for n := range segment {
		if _, ok := Sense(segment[:n]); ok != (n == 0) {
			t.Errorf("%d of %d bytes: ok is %v", n, len(segment), ok)
		}
	}
	got, ok := Sense(append(segment, 0xee)) // response data may follow
	if !ok || !bytes.Equal(got, sense) {
		t.Errorf("% x, %v", got, ok)
	}
}

// appendExtendedCDB appends the CDB bytes after the sixteenth, padded.
func appendExtendedCDB(dst, tail []byte) []byte { return appendAHS(dst, AHSExtendedCDB, tail) }

// appendReadLength appends the read length of a bidirectional command.
func appendReadLength(dst []byte, length uint32) []byte {
	return appendAHS(dst, AHSBidirectionalReadLength, binary.BigEndian.AppendUint32(nil, length))
}

func appendAHS(dst []byte, t AHSType, data []byte) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(1+len(data)))
	dst = append(dst, byte(t), 0)
	dst = append(dst, data...)
	return append(dst, ZeroPadding(len(data))...)
}

func TestAHS(t *testing.T) {
	tail := []byte{1, 2, 3, 4, 5, 6}
	ahs := appendExtendedCDB(nil, tail)
	ahs = appendReadLength(ahs, 0x01020304)
	want := []byte{
		0, 7, 1, 0, 1, 2, 3, 4, 5, 6, 0, 0,
		0, 5, 2, 0, 1, 2, 3, 4,
	}
	if !bytes.Equal(ahs, want) {
		t.Fatalf("% x, expected % x", ahs, want)
	}
	length, found, err := BidirectionalReadLength(ahs)
	if length != 0x01020304 || !found || err != nil {
		t.Errorf("read length %#x, %v, %v", length, found, err)
	}
	cmd := new(SCSICommand).Init()
	for i := range cmd.CDB() {
		cmd.CDB()[i] = 0x7f
	}
	cdb, err := cmd.AppendCDB(nil, ahs)
	if err != nil || len(cdb) != 22 || cdb[15] != 0x7f || !bytes.Equal(cdb[16:], tail) {
		t.Errorf("CDB % x, %v", cdb, err)
	}
	if cdb, err = cmd.AppendCDB(nil, nil); err != nil || len(cdb) != 16 {
		t.Errorf("CDB without AHS: % x, %v", cdb, err)
	}
}

// TestAHSTruncated: at every length that does not end a segment the walk ends
// in an error, and no accessor finds anything in a broken list.
func TestAHSTruncated(t *testing.T) {
	ahs := appendExtendedCDB(nil, []byte{1, 2, 3, 4, 5, 6})
	first := len(ahs)
	ahs = appendReadLength(ahs, 9)
	for n := range len(ahs) {
		whole := n == 0 || n == first
		_, found, err := FindAHS(ahs[:n], AHSExtendedCDB)
		if (err == nil) != whole || err != nil && !errors.Is(err, ErrAHS) {
			t.Errorf("%d bytes: %v", n, err)
		}
		if whole && found != (n == first) {
			t.Errorf("%d bytes: found is %v", n, found)
		}
		if _, found, _ := BidirectionalReadLength(ahs[:n]); found {
			t.Errorf("%d bytes: found a read length", n)
		}
		if cdb, err := new(SCSICommand).AppendCDB(nil, ahs[:n]); !whole && (err == nil || cdb != nil) {
			t.Errorf("%d bytes: CDB % x, %v", n, cdb, err)
		}
	}
}

func TestAHSMalformed(t *testing.T) {
	for name, ahs := range map[string][]byte{
		"AHSLength 0":        {0, 0, 1, 0},
		"AHSLength too long": {0, 9, 1, 0, 0, 0, 0, 0},
		"greatest AHSLength": {0xff, 0xff, 1, 0},
		"second is broken":   {0, 1, 9, 0, 0, 0, 1, 0},
	} {
		if _, _, err := FindAHS(ahs, AHSExtendedCDB); !errors.Is(err, ErrAHS) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := BidirectionalReadLength([]byte{0, 3, 2, 0, 1, 2, 0, 0}); !errors.Is(err, ErrAHS) {
		t.Errorf("read length of two bytes: %v", err)
	}
}

// FuzzViews: no accessor of any view panics, whatever the header.
func FuzzViews(f *testing.F) {
	f.Add(bytes.Repeat([]byte{0xff}, BHSLength))
	f.Add(make([]byte, BHSLength))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < BHSLength {
			return
		}
		header := BHS(data[:BHSLength])
		_ = header.WireLength(true, true)
		_ = header.Opcode().String()
		for _, g := range goldens {
			view := reflect.New(reflect.TypeOf(g.view).Elem())
			*bhsOf(view.Interface()) = header
			for i := range view.NumMethod() {
				m := view.Method(i)
				name := view.Type().Method(i).Name
				if m.Type().NumIn() > 0 || strings.HasPrefix(name, "Set") || name == "Init" {
					continue
				}
				if s, ok := m.Call(nil)[0].Interface().(interface{ String() string }); ok {
					_ = s.String()
				}
			}
		}
		cmd := (*SCSICommand)(&header)
		_, _ = cmd.AppendCDB(nil, data[BHSLength:])
		_, _ = Sense(data[BHSLength:])
	})
}

// FuzzAHS: the walk ends, stays within its bytes and agrees with its encoder.
func FuzzAHS(f *testing.F) {
	f.Add(appendReadLength(appendExtendedCDB(nil, []byte{1}), 7))
	f.Add([]byte{0xff, 0xff, 1, 0})
	f.Fuzz(func(t *testing.T, ahs []byte) {
		var again []byte
		it := IterateAHS(ahs)
		for s, ok := it.Next(); ok; s, ok = it.Next() {
			again = appendAHS(again, s.Type, s.Data)
		}
		if it.Err() == nil && len(again) != len(ahs)+Padding(len(ahs)) {
			t.Fatalf("%d bytes encode to %d", len(ahs), len(again))
		}
		if _, ok := it.Next(); ok {
			t.Fatal("goes on after its end")
		}
	})
}

func TestParsingAllocatesNothing(t *testing.T) {
	data := goldenCommand()
	ahs := appendReadLength(appendExtendedCDB(nil, make([]byte, 16)), 7)
	cdb := make([]byte, 0, 64)
	if n := testing.AllocsPerRun(100, func() {
		cmd := (*SCSICommand)(data[:])
		cdb, _ = cmd.AppendCDB(cdb[:0], ahs)
		_, _, _ = BidirectionalReadLength(ahs)
		_ = HeaderDigest(cmd.BHS(), ahs)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func goldenCommand() *[BHSLength]byte {
	cmd := new(SCSICommand).Init()
	cmd.SetRead(true)
	cmd.SetExpectedDataTransferLength(4096)
	cmd.BHS().SetCmdSN(7)
	return (*[BHSLength]byte)(cmd)
}

var sink uint64

func BenchmarkParseCommand(b *testing.B) {
	data := goldenCommand()
	b.ReportAllocs()
	for b.Loop() {
		cmd := (*SCSICommand)(data[:])
		if cmd.Read() && !cmd.Write() {
			sink += uint64(cmd.ExpectedDataTransferLength()) + uint64(cmd.BHS().CmdSN()) + uint64(cmd.BHS().ITT()) + cmd.BHS().LUN() + uint64(cmd.CDB()[0])
		}
	}
}

func BenchmarkHeaderDigest(b *testing.B) {
	header := (*BHS)(goldenCommand())
	b.ReportAllocs()
	b.SetBytes(BHSLength)
	for b.Loop() {
		sink += uint64(HeaderDigest(header, nil))
	}
}

func BenchmarkDataDigest(b *testing.B) {
	for _, size := range []int{4 << 10, 256 << 10} {
		data := make([]byte, size)
		b.Run(FormatNumber(uint64(size)), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(size))
			for b.Loop() {
				sink += uint64(DataDigest(data, nil))
			}
		})
	}
}
