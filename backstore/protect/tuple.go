package protect

import "encoding/binary"

// TupleSize is the size in bytes of a block's protection information: LOGICAL
// BLOCK GUARD (2 bytes), LOGICAL BLOCK APPLICATION TAG (2), LOGICAL BLOCK
// REFERENCE TAG (4), big endian (SBC-3 clause 4.22.3).
const TupleSize = 8

// Type is the protection type (SBC-3 clause 4.22.2): what the reference tag is.
type Type uint8

// The types of protection.
const (
	None  Type = iota
	Type1      // the low four bytes of the block's LBA
	Type2      // the one that 32-byte CDBs name for their first block, then one more each
	Type3      // the application client's: not checked
)

// escape is the application tag of a block that is not checked; with type 3 the
// reference tag must be all ones too.
const (
	escapeApp = 0xffff
	escapeRef = 0xffffffff
)

// Tuple is one block's protection information.
type Tuple []byte

// Guard is the CRC of the block's data.
func (t Tuple) Guard() uint16 { return binary.BigEndian.Uint16(t) }

// App is the application tag.
func (t Tuple) App() uint16 { return binary.BigEndian.Uint16(t[2:]) }

// Ref is the reference tag.
func (t Tuple) Ref() uint32 { return binary.BigEndian.Uint32(t[4:]) }

// Set fills in the tuple.
func (t Tuple) Set(guard, app uint16, ref uint32) {
	binary.BigEndian.PutUint16(t, guard)
	binary.BigEndian.PutUint16(t[2:], app)
	binary.BigEndian.PutUint32(t[4:], ref)
}

// Escaped reports whether the tuple says that its block is not to be checked
// (SBC-3 clause 4.22.4).
func (t Tuple) Escaped(kind Type) bool {
	return t.App() == escapeApp && (kind != Type3 || t.Ref() == escapeRef)
}

// Checks says which fields of tuples are compared.
type Checks struct {
	Guard, Ref bool
	App        uint16 // what the application tag must be where AppMask has ones
	AppMask    uint16
}

// Field names the part of a tuple that was found wrong, as the additional sense
// code qualifiers of SPC-4 do: 10h/01h guard, 10h/02h application tag, 10h/03h
// reference tag.
type Field uint8

// The fields of a tuple.
const (
	GuardField Field = 1 + iota
	AppField
	RefField
)

// Check compares whole blocks of data with their tuples, of which the first has
// the reference tag ref. It returns the index of the first block that is wrong and
// in which field; field 0 says that all is right.
func (c Checks) Check(kind Type, block int, data, tuples []byte, ref uint32) (at int, wrong Field) {
	for ; len(data) > 0; at++ {
		t := Tuple(tuples[:TupleSize])
		switch {
		case t.Escaped(kind):
		case c.Guard && t.Guard() != Guard(data[:block]):
			return at, GuardField
		case (t.App()^c.App)&c.AppMask != 0:
			return at, AppField
		case c.Ref && kind != Type3 && t.Ref() != ref+uint32(at):
			return at, RefField
		}
		data, tuples = data[block:], tuples[TupleSize:]
	}
	return 0, 0
}

// Generate makes the tuples of whole blocks of data, as for a write without
// protection information: the first gets the reference tag ref, with type 3 all
// ones; application tags are all zeroes.
func Generate(kind Type, block int, data, tuples []byte, ref uint32) {
	for at := uint32(0); len(data) > 0; at++ {
		tag := ref + at
		if kind == Type3 {
			tag = escapeRef
		}
		Tuple(tuples).Set(Guard(data[:block]), 0, tag)
		data, tuples = data[block:], tuples[TupleSize:]
	}
}

// Interleave copies blocks, each followed by its tuple, as they cross the
// transport (SBC-3 clause 4.22.3).
func Interleave(to []byte, block int, data, tuples []byte) {
	for len(data) > 0 {
		copy(to, data[:block])
		copy(to[block:], tuples[:TupleSize])
		to, data, tuples = to[block+TupleSize:], data[block:], tuples[TupleSize:]
	}
}

// Separate is the opposite of Interleave.
func Separate(data, tuples []byte, block int, from []byte) {
	for len(data) > 0 {
		copy(data[:block], from)
		copy(tuples[:TupleSize], from[block:])
		from, data, tuples = from[block+TupleSize:], data[block:], tuples[TupleSize:]
	}
}
