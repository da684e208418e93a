// Package generations has blocks that tell which write they are of, a ledger of the writes
// that were acknowledged, and the time in which nothing was.
package generations

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// BlockBytes is the length of a block.
const BlockBytes = 4096

// Block is what is known of a block that one user alone writes: the last write that was
// sent, and the last one that was acknowledged.
type Block struct{ Sent, Acked atomic.Uint32 }

// ErrStale is an older block than it has to be, ErrLost any other one that it cannot be.
var (
	ErrStale = errors.New("older than what was acknowledged")
	ErrLost  = errors.New("not what was written")
)

// Fill writes what write g of block n is into data, a block.
func Fill(data []byte, n int, g uint32) {
	for i := 0; i < BlockBytes; i += 8 {
		binary.LittleEndian.PutUint64(data[i:], uint64(n)<<32|uint64(g))
	}
}

// Judge compares data of block n with the writes that it may be of. Write 0 are zeroes.
func Judge(data []byte, n int, least, most uint32) error {
	if len(data) != BlockBytes {
		return fmt.Errorf("block %d: %d bytes were read: %w", n, len(data), ErrLost)
	}
	found := binary.LittleEndian.Uint64(data)
	for i := 0; i < BlockBytes; i += 8 {
		if binary.LittleEndian.Uint64(data[i:]) != found {
			return fmt.Errorf("block %d is torn: %w", n, ErrLost)
		}
	}
	g := uint32(found)
	if g >= least && g <= most && (found == 0 || found>>32 == uint64(n)) {
		return nil
	}
	err := ErrLost
	if g < least {
		err = ErrStale
	}
	return fmt.Errorf("block %d: found write %d of block %d, expected %d to %d: %w", n, g, found>>32, least, most, err)
}

// Gap is the longest time without an end of a command.
type Gap struct {
	mu   sync.Mutex
	last time.Time
	gap  time.Duration
}

// Begin forgets what was.
func (g *Gap) Begin() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gap, g.last = 0, time.Now()
}

// Went notes that a command has ended well.
func (g *Gap) Went() {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	g.gap, g.last = max(g.gap, now.Sub(g.last)), now
}

// Longest is the longest one since Begin, the one that is under way too.
func (g *Gap) Longest() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return max(g.gap, time.Since(g.last))
}

// Median is that of a list that is not empty.
func Median(all []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}
