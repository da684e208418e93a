package mode

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"lunar/target/scsi/sense"
)

const (
	controlSWP    = "0a 0a 00 10 08 00 0000 ffff 0000"
	controlDSense = "0a 0a 04 10 00 00 0000 ffff 0000"
	cachingOff    = "08 12 00 00 0000 0000 0000 0000 00 00 0000 00 000000"
)

// TestBlockDescriptorOverflow: more blocks than the short descriptor can say.
func TestBlockDescriptorOverflow(t *testing.T) {
	m := &Parameters{BlockSize: 4096, Blocks: 1 << 32}
	if got := m.blockDescriptor(false); !bytes.Equal(got, []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0x10, 0}) {
		t.Errorf("short descriptor % x", got)
	}
	if got := m.blockDescriptor(true); !bytes.Equal(got, []byte{0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10, 0}) {
		t.Errorf("long descriptor % x", got)
	}
}

// TestModePagesWellFormed: ascending, page length right, bits within the page.
func TestModePagesWellFormed(t *testing.T) {
	for i := range pages {
		p := &pages[i]
		length := int(p.base[1])
		if p.headerLength() == 4 {
			length = int(p.base[2])<<8 | int(p.base[3])
		}
		if p.base[0]&0x3f != p.code || p.headerLength()+length != len(p.base) || len(p.base) > maxPage {
			t.Errorf("page %02x/%02x: %x", p.code, p.subpage, p.base)
		}
		if i > 0 && bytes.Compare([]byte{p.code, p.subpage}, []byte{pages[i-1].code, pages[i-1].subpage}) <= 0 {
			t.Errorf("page %02x/%02x is not in its place", p.code, p.subpage)
		}
		for _, bit := range p.bits {
			if bit.offset < p.headerLength() || p.base[bit.offset]&bit.mask != 0 {
				t.Errorf("page %02x/%02x: bit %02x of byte %d", p.code, p.subpage, bit.mask, bit.offset)
			}
		}
	}
}

// TestModeRoundTrip: what MODE SENSE says can be selected, and is then said
// again, whatever the state and the header.
func TestModeRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		through := rapid.Bool().Draw(rt, "writeThrough")
		blocks := rapid.Uint64Range(1, 1<<40).Draw(rt, "blocks")
		state := Values{
			WriteThrough:    through,
			WriteCache:      rapid.Bool().Draw(rt, "WCE") && !through,
			SoftProtect:     rapid.Bool().Draw(rt, "SWP"),
			DescriptorSense: rapid.Bool().Draw(rt, "D_SENSE"),
		}
		request := Request{
			ten:          rapid.Bool().Draw(rt, "ten"),
			noDescriptor: rapid.Bool().Draw(rt, "DBD"),
			page:         AllPages, subpage: AllSubpages,
		}
		request.long = request.ten && rapid.Bool().Draw(rt, "LLBAA")
		said := &Parameters{BlockSize: 512, Blocks: blocks, Values: &state}
		data, refused := said.Sense(request)
		if refused != nil {
			rt.Fatalf("MODE SENSE: %+v", *refused)
		}
		start := Values{WriteThrough: through, WriteCache: rapid.Bool().Draw(rt, "was") && !through}
		got, refused := (&Parameters{BlockSize: 512, Blocks: blocks, Values: &start}).Select(&List{Data: data, Ten: request.ten})
		if refused != nil || got != state {
			rt.Fatalf("MODE SELECT of %x: %+v, sense %+v; want %+v", data, got, refused, state)
		}
	})
}

// FuzzModeSelect: no list makes it panic, a refused list changes nothing, and
// an accepted one leads to a state that differs from the old one in nothing
// but the bits that MODE SENSE calls changeable.
func FuzzModeSelect(f *testing.F) {
	for _, list := range []string{
		"00000000" + cachingOff, "00000000" + controlSWP + controlDSense,
		"00000008 00000800 00 000200" + cachingOff + controlSWP + controlDSense,
	} {
		data, err := hex.DecodeString(strings.ReplaceAll(list, " ", ""))
		if err != nil {
			f.Fatal(err)
		}
		for n := range data {
			f.Add(data[:n], false, false)
		}
		f.Add(data, false, true)
		f.Add(append([]byte{0, 0, 0, 0}, data...), true, false)
	}
	f.Fuzz(func(t *testing.T, list []byte, ten, writeThrough bool) {
		before := Values{WriteThrough: writeThrough, WriteCache: !writeThrough}
		m := &Parameters{BlockSize: 512, Blocks: 2048, Values: &before}
		original := bytes.Clone(list)
		after, s := m.Select(&List{Data: list, Ten: ten})
		if !bytes.Equal(list, original) || before != (Values{WriteThrough: writeThrough, WriteCache: !writeThrough}) {
			t.Fatal("input changed")
		}
		if s != nil {
			if s.Key != sense.IllegalRequest || s.FieldValid && int(s.Field) >= len(list) {
				t.Fatalf("sense %+v for a list of %d bytes", *s, len(list))
			}
			return
		}
		if writeThrough && (!after.WriteThrough || after.WriteCache) {
			t.Fatalf("values %+v after %x", after, list)
		}
	})
}
