package wire

import "sync/atomic"

// Counts are of messages to and from a node, by kind.
type Counts [16]Count

// Count is what became of messages of a kind.
type Count struct {
	Sent    atomic.Uint64 // calls, since the beginning
	Unknown atomic.Uint64 // of them, those that have an unknown outcome
	Open    atomic.Int64  // those that are not answered yet
	Taken   atomic.Uint64 // messages of the other node, since the beginning
	Held    atomic.Int64  // of them, those that were not answered yet
}

func (c *Counts) of(kind uint8) *Count { return &c[int(kind)%len(c)] }
