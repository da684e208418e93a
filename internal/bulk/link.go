package bulk

import (
	"lunar/internal/pipeline"
	"lunar/internal/pipeline/rftp"
)

// Link is what joins two sides: a control channel for messages and channels for blocks.
// Send may be called by any number of goroutines; Receive by one.
type Link interface {
	// Send sends a message, in order.
	Send(*rftp.Message) error
	// Receive returns the next message. At the sink of an ordered link that is BLOCK_DONE
	// when a block has arrived, too.
	Receive() (rftp.Message, error)
	// Key returns the key of the blocks' cipher, which both sides have and nobody else;
	// nil: the blocks are not enciphered.
	Key() []byte
	// Close ends everything, also Receive. It does not wait, and may be called again.
	Close() error
	// Wait returns when nobody uses the pool any more, after Close.
	Wait()
}

// SourceLink is the link of who sends blocks.
type SourceLink interface {
	Link
	// Ordered reports whether the sink hears of a block by the channel of its data.
	Ordered() bool
	// Open opens n channels for the memory of a pool.
	Open(session uint32, n int, pool *pipeline.Pool) error
	// Write writes a frame, which is memory of the pool, to where a credit says. It does not
	// wait. done is called once, by any goroutine, and not before Write has returned; until
	// then the memory is the link's.
	Write(b *pipeline.Block, frame []byte, c rftp.Credit, done func(error))
}

// SinkLink is the link of who stores blocks.
type SinkLink interface {
	Link
	// Expose lets n channels of the peer write to frames of at most length bytes, which begin
	// lead bytes behind the begin of each block's memory. It returns the address of the first
	// frame, the distance of frames, and the key for them. at returns the block of an
	// address for which a credit is out, or nil.
	Expose(session uint32, n int, pool *pipeline.Pool, lead, length int, at func(addr uint64) *pipeline.Block) (base uint64, rkey uint32, err error)
}
