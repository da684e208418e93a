package iser

import (
	"bytes"
	"encoding/binary"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"

	"lunar/target"
	"lunar/target/pdu"
)

// message makes one with an iSER header, a BHS, AHS and data.
func messageOf(flags byte, op pdu.Opcode, ahs, data int, padding int) []byte {
	m := make([]byte, messageHead+ahs+data+padding)
	m[0] = flags
	bhs := (*pdu.BHS)(m[headerLength:])
	bhs[0] = byte(op)
	bhs[4] = byte(ahs / 4)
	bhs.SetDataSegmentLength(data)
	return m
}

func TestHeader(t *testing.T) {
	m := messageOf(typeControl|readSTag|writeSTag, pdu.OpSCSICommand, 0, 0, 0)
	h := (*header)(m)
	binary.BigEndian.PutUint32(h[4:], 0x11223344)
	binary.BigEndian.PutUint64(h[8:], 0x5566778899aabbcc)
	binary.BigEndian.PutUint32(h[16:], 0xddeeff00)
	binary.BigEndian.PutUint64(h[20:], 0x0102030405060708)
	if w := h.write(); w != (remote{0x11223344, 0x5566778899aabbcc, true}) {
		t.Errorf("write buffer %+v", w)
	}
	if r := h.read(); r != (remote{0xddeeff00, 0x0102030405060708, true}) {
		t.Errorf("read buffer %+v", r)
	}
	h[0] = typeControl
	if h.read().ok || h.write().ok {
		t.Error("buffers without their flags")
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		name string
		m    []byte
		want string // of the error
	}{
		{"empty", nil, "0 bytes"},
		{"short of a header", make([]byte, messageHead-1), "75 bytes"},
		{"bare", messageOf(typeControl, pdu.OpNOPOut, 0, 0, 0), ""},
		{"data", messageOf(typeControl, pdu.OpNOPOut, 0, 5, 0), ""},
		{"padded", messageOf(typeControl, pdu.OpNOPOut, 0, 5, 3), ""},
		{"too much padding", messageOf(typeControl, pdu.OpNOPOut, 0, 5, 4), "expected 81"},
		{"AHS", messageOf(typeControl, pdu.OpSCSICommand, 20, 512, 0), ""},
		{"data missing", messageOf(typeControl, pdu.OpSCSICommand, 0, 512, 0)[:messageHead+511], "expected 588"},
		{"AHS missing", messageOf(typeControl, pdu.OpSCSICommand, 8, 0, 0)[:messageHead+4], "expected 84"},
		{"hello", messageOf(typeHello, 0, 0, 0, 0), "Hello"},
		{"hello reply", messageOf(0x30, 0, 0, 0, 0), "type 0x3"},
	} {
		_, ahs, data, err := parse(c.m)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, expected an error with %q", c.name, err, c.want)
		case err == nil && len(ahs)+len(data) > len(c.m)-messageHead:
			t.Errorf("%s: %d bytes of AHS and %d of data of %d", c.name, len(ahs), len(data), len(c.m))
		}
	}
}

// Only a command that names its buffer may lack the data that it announces.
func TestCorrect(t *testing.T) {
	for _, v := range []struct {
		name      string
		flags     byte
		op        pdu.Opcode
		ahs, sent int
		corrected bool
	}{
		{"a write without its data", typeControl | writeSTag, pdu.OpSCSICommand, 0, 0, true},
		{"with AHS", typeControl | writeSTag, pdu.OpSCSICommand, 8, 0, true},
		{"some of the data", typeControl | writeSTag, pdu.OpSCSICommand, 0, 100, false},
		{"no buffer", typeControl, pdu.OpSCSICommand, 0, 0, false},
		{"a buffer to read to", typeControl | readSTag, pdu.OpSCSICommand, 0, 0, false},
		{"no command", typeControl | writeSTag, pdu.OpNOPOut, 0, 0, false},
	} {
		c := &conn{log: slog.New(slog.DiscardHandler), group: new(pollGroup)}
		m := messageOf(v.flags, v.op, v.ahs, 512, 0)[:messageHead+v.ahs+v.sent]
		c.correct(m)
		if _, _, data, err := parse(m); v.corrected != (err == nil && len(data) == 0) || c.corrected != v.corrected {
			t.Errorf("%s: %v", v.name, err)
		}
	}
}

// Initiators that announce data and send none are told of once in a while, however many
// connections they make.
func TestCorrectionsAreLoggedRarely(t *testing.T) {
	var log bytes.Buffer
	s := new(pollGroup)
	for range 100 {
		c := &conn{log: slog.New(slog.NewTextHandler(&log, nil)), group: s}
		c.correct(messageOf(typeControl|writeSTag, pdu.OpSCSICommand, 0, 512, 0)[:messageHead])
		if !c.corrected {
			t.Fatal("it was not corrected")
		}
	}
	if n := bytes.Count(log.Bytes(), []byte("\n")); n != 1 {
		t.Errorf("%d lines, expected one", n)
	}
}

// The data of a PDU without AHS begin at a sector's border of the slot.
func TestAlignment(t *testing.T) {
	if (messageAt+messageHead)%512 != 0 || slotSize%512 != 0 {
		t.Errorf("data at %d of slots of %d bytes", messageAt+messageHead, slotSize)
	}
	if controlSlot < messageHead+controlMost {
		t.Errorf("%d bytes for PDUs of %d", controlSlot, messageHead+controlMost)
	}
}

// tags behave as a map of bounded size.
func TestTags(t *testing.T) {
	const most = 20
	table, model := newTags(most), map[uint32]uint32{}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range uint32(20000) {
		itt := r.Uint32N(40) * 0x01000193
		switch _, known := model[itt]; {
		case r.IntN(3) == 0:
			table.remove(itt)
			delete(model, itt)
		case !known && len(model) == most:
			if table.add(itt) != nil {
				t.Fatal("a full table took another")
			}
		default:
			table.add(itt).unsolicited = i
			model[itt] = i
		}
		for itt, want := range model {
			if n := table.find(itt); n == nil || n.unsolicited != want {
				t.Fatalf("task %#x: found %+v, expected %d", itt, n, want)
			}
		}
	}
	for itt := range model {
		table.remove(itt)
	}
	for i := range uint32(most) {
		if table.add(i) == nil {
			t.Fatal("removed tasks take places")
		}
	}
}

// A ring keeps order while it grows and wraps.
func TestRing(t *testing.T) {
	var r ring[int]
	r.head, r.tail = 1<<32-100, 1<<32-100
	next, want := 0, 0
	for round := range 300 {
		for range round % 7 {
			*r.push() = next
			next++
		}
		for range min(round%5, r.len()) {
			if got := *r.pop(); got != want {
				t.Fatalf("found %d, expected %d", got, want)
			}
			want++
		}
	}
	*r.push() = -1
	if got := *r.unpush(); got != -1 || r.len() != next-want {
		t.Fatalf("took %d back, %d are left", got, r.len())
	}
	if got := *r.at(r.head); got != want {
		t.Fatalf("first %d, expected %d", got, want)
	}
}

// What is longer than the initiator's buffers never leaves: a fault of ours ends the
// session, not the initiator's queue pair.
func TestTooLongIsRefused(t *testing.T) {
	c := &conn{r: struct{ target.Receiver }{}}
	c.tx.longest = controlMost
	defer func() {
		if recover() == nil {
			t.Error("129 bytes for a buffer of 128 were taken")
		}
	}()
	c.SendControl(new(pdu.BHS), make([]byte, controlMost+1), nil)
}
