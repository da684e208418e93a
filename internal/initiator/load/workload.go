package load

import (
	"errors"
	"fmt"
	"time"
)

// Unit is the logical unit under load.
type Unit struct {
	LUN       uint64 // number
	BlockSize int    // bytes of a logical block
	Blocks    uint64 // capacity in logical blocks
	Units     int    // so many alike, by consecutive LUNs, that connections are spread over; 0 is 1
}

// Of is the LUN that a connection uses.
func (u Unit) Of(connection int) uint64 { return u.LUN + uint64(connection%max(1, u.Units)) }

// Share is one block size of a mix with its weight.
type Share struct {
	Bytes  int
	Weight int
}

// Workload says what to do, for how long, and from where.
type Workload struct {
	Depth       int     // commands outstanding per connection
	Rate        float64 // commands per second and connection, evenly spread; 0: as many as Depth lets
	Burst       int     // commands per connection that become due all at once each second, Rate being how fast they are sent at most; 0: no such
	Sizes       []Share // at least one
	ReadPercent int     // the rest are writes
	Random      bool    // otherwise sequential, every connection from its own start
	FirstLBA    uint64
	Blocks      uint64 // of the range; 0 means to the end
	Seed        uint64

	// Verify writes a pattern of (seed, LBA, generation), checks every read
	// of what was written, never lets a write race with another command on
	// the same blocks, and reads everything back at the end.
	Verify bool

	Warmup  time.Duration // not counted
	Runtime time.Duration // counted

	// Observe, if not nil, is told on the event thread of each command that
	// ended well, warm-up included: the connection's number and when the pass
	// that sent it and that which saw its end began, on evloop.Monotonic's clock.
	Observe func(connection int, started, ended int64)

	// InTurns looks at answers, and sends again, only when all commands of a connection have
	// one, so that server and client never work at a time. It is for commands that take one PDU
	// each way, without digests.
	InTurns bool

	Send       int           // most bytes of one system call that sends; 0: any
	CPU        int           // of the event thread; -1 leaves it to the kernel
	RealTime   bool          // the event thread, and no other, is a real-time one (SCHED_RR), which needs CAP_SYS_NICE
	Poll       time.Duration // longest look for responses before the thread sleeps, as long as looking pays
	ServerPIDs []int         // processes whose CPU time is reported
}

// maxVerifyBlocks bounds the generation table.
const maxVerifyBlocks = 1 << 28

// maxTransfer is the largest block size, bounded by what one buffer holds.
const maxTransfer = 16 << 20

// complete fills defaults in and checks the workload against the unit.
func (w *Workload) complete(u Unit) error {
	if w.Blocks == 0 && w.FirstLBA < u.Blocks {
		w.Blocks = u.Blocks - w.FirstLBA
	}
	switch {
	case w.Depth < 1 || w.Depth > maxDepth:
		return fmt.Errorf("depth %d, expected 1 to %d", w.Depth, maxDepth)
	case w.Rate < 0:
		return fmt.Errorf("rate %g, expected 0 or more", w.Rate)
	case w.Burst < 0:
		return fmt.Errorf("burst of %d, expected 0 or more", w.Burst)
	case w.ReadPercent < 0 || w.ReadPercent > 100:
		return fmt.Errorf("read percentage %d, expected 0 to 100", w.ReadPercent)
	case len(w.Sizes) == 0:
		return errors.New("no block size")
	case w.Runtime <= 0 || w.Warmup < 0:
		return fmt.Errorf("runtime %v with warmup %v, expected a positive runtime", w.Runtime, w.Warmup)
	case w.Blocks == 0 || w.FirstLBA+w.Blocks > u.Blocks:
		return fmt.Errorf("range of %d blocks from LBA %d, the unit has %d", w.Blocks, w.FirstLBA, u.Blocks)
	case w.Verify && w.Blocks > maxVerifyBlocks:
		return fmt.Errorf("range of %d blocks to verify, expected at most %d", w.Blocks, maxVerifyBlocks)
	}
	return w.checkSizes(u)
}

func (w *Workload) checkSizes(u Unit) error {
	for _, s := range w.Sizes {
		switch {
		case s.Bytes <= 0 || s.Bytes > maxTransfer || s.Bytes%u.BlockSize != 0:
			return fmt.Errorf("block size %d, expected a multiple of %d up to %d", s.Bytes, u.BlockSize, maxTransfer)
		case uint64(s.Bytes/u.BlockSize) > w.Blocks:
			return fmt.Errorf("block size %d is larger than the range of %d blocks", s.Bytes, w.Blocks)
		case s.Weight <= 0:
			return fmt.Errorf("weight %d of block size %d, expected a positive one", s.Weight, s.Bytes)
		}
	}
	return nil
}

// largest returns the largest block size in bytes.
func (w *Workload) largest() int {
	n := 0
	for _, s := range w.Sizes {
		n = max(n, s.Bytes)
	}
	return n
}
