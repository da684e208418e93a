package pipeline

// DigestSize is the length of a block's digest in bytes (BLAKE3).
const DigestSize = 32

// Block is a part of a data set, in memory that it keeps for good.
type Block struct {
	Session  uint32
	Sequence uint64 // of the block in its session, counted from 0
	Offset   int64  // bytes from the start of the data set
	Length   int    // bytes of Payload
	Digest   [DigestSize]byte
	Memory   []byte // all of it, with room for a header and a tag
	Index    int    // of the block in its pool

	State State
	since int64 // it is in a queue, or a stage has it, in ns; the Line's
}

// Do lets an event happen to the block. An error says that it may not: the caller has lost
// count of who owns the block.
func (b *Block) Do(t *Table, e Event) (err error) {
	b.State, err = t.Next(b.State, e)
	return err
}
