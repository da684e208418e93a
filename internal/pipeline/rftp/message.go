package rftp

import (
	"encoding/binary"
	"fmt"
)

// Type is what a message says.
type Type uint8

// The types. Those from Digests on are this project's.
const (
	BlockSizeReq    Type = iota + 1 // Size: of blocks
	BlockSizeRsp                    // Size, OK: the source offers half if not
	ChannelsReq                     // Count: of data channels
	ChannelsRsp                     // Count: how many it may be
	SessionReq                      // Name, Size in bytes, Unit and Physical
	SessionRsp                      // OK, or Text why not
	MRRequest                       // the source has no credit
	MRResponse                      // Credits
	BlockDone                       // Sequence, Addr: a block is there; with FlagUnused nothing is, and the credit is back
	DatasetComplete                 // Count of blocks that were sent, Sequence: how many of them because of BLOCK_AGAIN, Checksum of the data set; the sink's answer has OK
	Digests                         // Sequence: the first block; Sums: what the sink has from there on
	BlockAgain                      // Sequence and Addr of a damaged block
	Failed                          // Text: why the session ends
	types
)

// String returns the type's name.
func (t Type) String() string {
	names := [...]string{"BLOCK_SIZE_REQ", "BLOCK_SIZE_RSP", "CHANNELS_REQ", "CHANNELS_RSP", "SESSION_REQ", "SESSION_RSP", "MR_REQUEST",
		"MR_RESPONSE", "BLOCK_DONE", "DATASET_COMPLETE", "BLOCK_DIGESTS", "BLOCK_AGAIN", "FAILED"}
	if t == 0 || t >= types {
		return fmt.Sprintf("message type %d", uint8(t))
	}
	return names[t-1]
}

// FlagUnused says of a BLOCK_DONE that its block was not written: the credit is the sink's
// again.
const FlagUnused = 1 << 0

// FlagLast says of BLOCK_DIGESTS that they are the last.
const FlagLast = 1 << 1

// FlagReceived says of the sink's DATASET_COMPLETE that it has stored all blocks. Another one
// follows when it has looked at them again.
const FlagReceived = 1 << 2

// FlagIncremental says of SESSION_REQ that the sink need not look again at what it has looked
// at when an earlier data set was complete.
const FlagIncremental = 1 << 3

// Sizes in bytes. MaxBody bounds what follows a message's head.
const (
	HeadSize  = 8
	MaxBody   = 1<<16 - 1
	SumSize   = 32
	MaxSums   = (MaxBody - 10) / SumSize
	MaxText   = 1024
	creditLen = 16
)

// Credit is memory of the sink for a block.
type Credit struct {
	Addr   uint64
	RKey   uint32
	Length uint32
}

// Message is a message of the control channel. Which fields it has is said by its Type.
type Message struct {
	Type     Type
	Flags    uint8
	Session  uint32
	Size     uint64
	Count    uint64
	OK       bool
	Name     string
	Text     string
	Unit     uint32 // bytes of a logical block
	Physical uint32 // bytes of a physical block
	Credits  []Credit
	Sequence uint64
	Addr     uint64
	Checksum [SumSize]byte
	Sums     [][SumSize]byte
}

// field encodes and decodes one field.
type field struct {
	put func(b []byte, m *Message) []byte
	get func(c *cursor, m *Message)
}

var (
	size     = field{func(b []byte, m *Message) []byte { return binary.BigEndian.AppendUint64(b, m.Size) }, func(c *cursor, m *Message) { m.Size = c.u64() }}
	size32   = field{func(b []byte, m *Message) []byte { return binary.BigEndian.AppendUint32(b, uint32(m.Size)) }, func(c *cursor, m *Message) { m.Size = uint64(c.u32()) }}
	count16  = field{func(b []byte, m *Message) []byte { return binary.BigEndian.AppendUint16(b, uint16(m.Count)) }, func(c *cursor, m *Message) { m.Count = uint64(c.u16()) }}
	count    = field{func(b []byte, m *Message) []byte { return binary.BigEndian.AppendUint64(b, m.Count) }, func(c *cursor, m *Message) { m.Count = c.u64() }}
	sequence = field{func(b []byte, m *Message) []byte { return binary.BigEndian.AppendUint64(b, m.Sequence) }, func(c *cursor, m *Message) { m.Sequence = c.u64() }}
	addr     = field{func(b []byte, m *Message) []byte { return binary.BigEndian.AppendUint64(b, m.Addr) }, func(c *cursor, m *Message) { m.Addr = c.u64() }}
	unit     = field{func(b []byte, m *Message) []byte { return binary.BigEndian.AppendUint32(b, m.Unit) }, func(c *cursor, m *Message) { m.Unit = c.u32() }}
	physical = field{func(b []byte, m *Message) []byte { return binary.BigEndian.AppendUint32(b, m.Physical) }, func(c *cursor, m *Message) { m.Physical = c.u32() }}
	name     = field{func(b []byte, m *Message) []byte { return putText(b, m.Name) }, func(c *cursor, m *Message) { m.Name = c.text() }}
	text     = field{func(b []byte, m *Message) []byte { return putText(b, m.Text) }, func(c *cursor, m *Message) { m.Text = c.text() }}
	checksum = field{func(b []byte, m *Message) []byte { return append(b, m.Checksum[:]...) }, func(c *cursor, m *Message) { copy(m.Checksum[:], c.bytes(SumSize)) }}
	ok       = field{putOK, func(c *cursor, m *Message) { m.OK = c.bool() }}
	credits  = field{putCredits, getCredits}
	sums     = field{putSums, getSums}
)

// fields are those of each type, in order.
var fields = [types][]field{
	BlockSizeReq: {size32, ok}, BlockSizeRsp: {size32, ok},
	ChannelsReq: {count16}, ChannelsRsp: {count16},
	SessionReq: {name, size, unit, physical}, SessionRsp: {ok, text},
	MRRequest: {}, MRResponse: {credits},
	BlockDone: {sequence, addr}, DatasetComplete: {count, sequence, checksum, ok},
	Digests: {sequence, sums}, BlockAgain: {sequence, addr}, Failed: {text},
}

// Append appends the message's bytes. Its texts and lists must fit.
func (m *Message) Append(b []byte) []byte {
	at := len(b)
	b = append(b, byte(m.Type), m.Flags, 0, 0)
	b = binary.BigEndian.AppendUint32(b, m.Session)
	for _, f := range fields[m.Type] {
		b = f.put(b, m)
	}
	binary.BigEndian.PutUint16(b[at+2:], uint16(len(b)-at-HeadSize))
	return b
}

// BodyLength returns how many bytes follow a message's head, which has HeadSize bytes.
func BodyLength(head []byte) int { return int(binary.BigEndian.Uint16(head[2:])) }

// Parse reads a message that is all of b.
func Parse(b []byte) (m Message, err error) {
	if len(b) < HeadSize || BodyLength(b) != len(b)-HeadSize {
		return m, fmt.Errorf("message of %d bytes: found another length in its head", len(b))
	}
	m.Type, m.Flags, m.Session = Type(b[0]), b[1], binary.BigEndian.Uint32(b[4:])
	if m.Type == 0 || m.Type >= types {
		return m, fmt.Errorf("found %v, expected one of the protocol", m.Type)
	}
	c := cursor{rest: b[HeadSize:]}
	for _, f := range fields[m.Type] {
		f.get(&c, &m)
	}
	if c.bad || len(c.rest) > 0 {
		return m, fmt.Errorf("%v: found a body of %d bytes, expected another length", m.Type, len(b)-HeadSize)
	}
	return m, nil
}

func putOK(b []byte, m *Message) []byte {
	if m.OK {
		return append(b, 1)
	}
	return append(b, 0)
}

func putText(b []byte, s string) []byte {
	s = s[:min(len(s), MaxText)]
	return append(binary.BigEndian.AppendUint16(b, uint16(len(s))), s...)
}

func putCredits(b []byte, m *Message) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(len(m.Credits)))
	for _, k := range m.Credits {
		b = binary.BigEndian.AppendUint64(b, k.Addr)
		b = binary.BigEndian.AppendUint32(b, k.RKey)
		b = binary.BigEndian.AppendUint32(b, k.Length)
	}
	return b
}

func getCredits(c *cursor, m *Message) {
	for range c.list(creditLen) {
		m.Credits = append(m.Credits, Credit{c.u64(), c.u32(), c.u32()})
	}
}

func putSums(b []byte, m *Message) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(len(m.Sums)))
	for i := range m.Sums {
		b = append(b, m.Sums[i][:]...)
	}
	return b
}

func getSums(c *cursor, m *Message) {
	for range c.list(SumSize) {
		m.Sums = append(m.Sums, [SumSize]byte(c.bytes(SumSize)))
	}
}
