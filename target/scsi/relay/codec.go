package relay

import (
	"encoding/binary"
	"errors"
	"fmt"

	"lunar/target/scsi/sense"
)

// MaxHeader is more than the bytes of an Execute, Want, Part or Answer without its data.
const MaxHeader = 512

// maxText bounds names: iSCSI names have 223 bytes, and an initiator port some more.
const maxText = 1024

// TypeOf returns the type of a message.
func TypeOf(message []byte) (Type, error) {
	if len(message) < 2 || message[0] != Version {
		return 0, fmt.Errorf("found a message that begins with % x, expected version %d", message[:min(len(message), 2)], Version)
	}
	return Type(message[1]), nil
}

// Append appends the message.
func (m *Begin) Append(b []byte) []byte {
	b = append(b, Version, byte(TypeBegin))
	b = binary.BigEndian.AppendUint64(b, m.Nexus)
	b = append(b, flags(m.Again, m.ReadOnly))
	b = binary.BigEndian.AppendUint16(b, m.Tag)
	b = binary.BigEndian.AppendUint64(b, m.LUN)
	for _, s := range []string{m.Volume, m.Initiator, m.Target, m.Holder, m.Group, m.User} {
		b = appendText(b, s)
	}
	return b
}

// Parse reads what Append has written.
func (m *Begin) Parse(message []byte) error {
	r := read(message, TypeBegin)
	m.Nexus = r.uint64()
	r.flags(&m.Again, &m.ReadOnly)
	m.Tag, m.LUN = r.uint16(), r.uint64()
	for _, s := range []*string{&m.Volume, &m.Initiator, &m.Target, &m.Holder, &m.Group, &m.User} {
		*s = r.text()
	}
	return r.end()
}

// Append appends the message.
func (m *End) Append(b []byte) []byte {
	return binary.BigEndian.AppendUint64(append(b, Version, byte(TypeEnd)), m.Nexus)
}

// Parse reads what Append has written.
func (m *End) Parse(message []byte) error {
	r := read(message, TypeEnd)
	m.Nexus = r.uint64()
	return r.end()
}

// Append appends the message without Data, which has to follow it.
func (m *Execute) Append(b []byte) []byte {
	b = append(b, Version, byte(TypeExecute))
	b = binary.BigEndian.AppendUint64(b, m.Nexus)
	b = binary.BigEndian.AppendUint64(b, m.Task)
	b = append(b, m.Attribute, flags(m.HasOut, m.HasIn, m.ReadOnly))
	b = binary.BigEndian.AppendUint32(b, m.EDTL)
	b = binary.BigEndian.AppendUint32(b, m.ReadEDTL)
	return append(append(b, byte(len(m.CDB))), m.CDB...)
}

// Parse reads what Append has written, and Data behind it. CDB and Data are parts of message.
func (m *Execute) Parse(message []byte) error {
	r := read(message, TypeExecute)
	m.Nexus, m.Task, m.Attribute = r.uint64(), r.uint64(), r.uint8()
	r.flags(&m.HasOut, &m.HasIn, &m.ReadOnly)
	m.EDTL, m.ReadEDTL = r.uint32(), r.uint32()
	m.CDB = r.bytes(int(r.uint8()))
	m.Data = r.rest()
	return r.end()
}

// Append appends the message.
func (m *Abort) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(append(b, Version, byte(TypeAbort)), m.Nexus)
	return binary.BigEndian.AppendUint64(b, m.Task)
}

// Parse reads what Append has written.
func (m *Abort) Parse(message []byte) error {
	r := read(message, TypeAbort)
	m.Nexus, m.Task = r.uint64(), r.uint64()
	return r.end()
}

// Append appends the message.
func (m *Manage) Append(b []byte) []byte {
	return append(binary.BigEndian.AppendUint64(append(b, Version, byte(TypeManage)), m.Nexus), m.Function)
}

// Parse reads what Append has written.
func (m *Manage) Parse(message []byte) error {
	r := read(message, TypeManage)
	m.Nexus, m.Function = r.uint64(), r.uint8()
	return r.end()
}

// Append appends the message.
func (m *Want) Append(b []byte) []byte {
	b = appendText(append(b, Version, byte(TypeWant)), m.Volume)
	b = binary.BigEndian.AppendUint64(b, m.Task)
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, m.Offset), m.Len)
}

// Parse reads what Append has written.
func (m *Want) Parse(message []byte) error {
	r := read(message, TypeWant)
	m.Volume, m.Task, m.Offset, m.Len = r.text(), r.uint64(), r.uint32(), r.uint32()
	return r.end()
}

// Append appends the message without Data, which has to follow it.
func (m *Part) Append(b []byte) []byte {
	b = appendText(append(b, Version, byte(TypePart)), m.Volume)
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(b, m.Task), m.Offset)
}

// Parse reads what Append has written, and Data behind it, a part of message.
func (m *Part) Parse(message []byte) error {
	r := read(message, TypePart)
	m.Volume, m.Task, m.Offset = r.text(), r.uint64(), r.uint32()
	m.Data = r.rest()
	return r.end()
}

// Append appends the answer without Data, which has to follow it.
func (m *Answer) Append(b []byte) []byte {
	b = append(b, Version, byte(typeAnswer), byte(m.Outcome), m.Status, flags(m.Takes, m.Descriptor, m.Sense != nil))
	b = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, m.Length), m.Offset)
	b = binary.BigEndian.AppendUint32(b, m.Took)
	if m.Sense != nil {
		b = appendSense(b, m.Sense)
	}
	return b
}

// Parse reads what Append has written, and Data behind it, a part of answer.
func (m *Answer) Parse(answer []byte) error {
	var sensed bool
	r := read(answer, typeAnswer)
	m.Outcome, m.Status = Outcome(r.uint8()), r.uint8()
	r.flags(&m.Takes, &m.Descriptor, &sensed)
	m.Length, m.Offset, m.Took, m.Sense = r.uint32(), r.uint32(), r.uint32(), nil
	if sensed {
		m.Sense = r.sense()
	}
	m.Data = r.rest()
	if r.err == nil && m.Outcome >= outcomes {
		return fmt.Errorf("found outcome %d, expected less than %d", m.Outcome, outcomes)
	}
	return r.end()
}

func appendSense(b []byte, s *sense.Data) []byte {
	b = append(b, byte(s.Key), flags(s.Deferred, s.InfoValid, s.FieldValid, s.FieldInCDB, s.BitValid, s.ProgressValid), s.Bit)
	b = binary.BigEndian.AppendUint16(b, uint16(s.ASC))
	b = binary.BigEndian.AppendUint64(b, s.Info)
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(b, s.Field), s.Progress)
}

func (r *reader) sense() *sense.Data {
	s := &sense.Data{Key: sense.Key(r.uint8())}
	r.flags(&s.Deferred, &s.InfoValid, &s.FieldValid, &s.FieldInCDB, &s.BitValid, &s.ProgressValid)
	s.Bit, s.ASC, s.Info = r.uint8(), sense.ASC(r.uint16()), r.uint64()
	s.Field, s.Progress = r.uint16(), r.uint16()
	return s
}

func flags(all ...bool) (b byte) {
	for i, set := range all {
		if set {
			b |= 1 << i
		}
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint16(b, uint16(len(s))), s...)
}

// reader reads fields; after one that is not there all are zero.
type reader struct {
	left []byte
	err  error
}

func read(message []byte, expected Type) *reader {
	t, err := TypeOf(message)
	if err == nil && t != expected {
		err = fmt.Errorf("found a message of type %d, expected %d", t, expected)
	}
	if err != nil {
		return &reader{err: err}
	}
	return &reader{left: message[2:]}
}

var errShort = errors.New("found a message that ends too early")

func (r *reader) bytes(n int) []byte {
	if len(r.left) < n {
		r.left = nil
		if r.err == nil {
			r.err = errShort
		}
	}
	if r.err != nil {
		return nil
	}
	b := r.left[:n:n]
	r.left = r.left[n:]
	return b
}

func (r *reader) number(n int) (v uint64) {
	for _, b := range r.bytes(n) {
		v = v<<8 | uint64(b)
	}
	return v
}

func (r *reader) uint8() uint8   { return uint8(r.number(1)) }
func (r *reader) uint16() uint16 { return uint16(r.number(2)) }
func (r *reader) uint32() uint32 { return uint32(r.number(4)) }
func (r *reader) uint64() uint64 { return r.number(8) }

func (r *reader) flags(all ...*bool) {
	b := r.uint8()
	for i, set := range all {
		*set = b&(1<<i) != 0
	}
	if r.err == nil && b>>len(all) != 0 {
		r.err = fmt.Errorf("found flags %#x, expected %d of them", b, len(all))
	}
}

func (r *reader) text() string {
	n := int(r.uint16())
	if n > maxText && r.err == nil {
		r.err = fmt.Errorf("found a text of %d bytes, expected %d at most", n, maxText)
	}
	return string(r.bytes(n))
}

func (r *reader) rest() []byte { return r.bytes(len(r.left)) }

func (r *reader) end() error {
	if r.err == nil && len(r.left) > 0 {
		r.err = fmt.Errorf("found %d bytes behind a message, expected none", len(r.left))
	}
	return r.err
}
