package scsi

import (
	"fmt"
	"math"

	"lunar/backstore"
	"lunar/target/scsi/sense"
)

// Resize makes the logical unit bytes long, a multiple of its block length:
// first the store, then what initiators are told, each by the unit attention
// CAPACITY DATA HAS CHANGED (SBC-3 clause 4.10). When it shrinks, what lies
// behind the new end is gone, and commands that are about that end with LOGICAL
// BLOCK ADDRESS OUT OF RANGE. After an error the size is what it was;
// backstore.ErrUnsupported says that the store cannot change its size. It must
// not be called on an event thread.
func (lu *LogicalUnit) Resize(bytes int64) error {
	lu.resizing.Lock()
	defer lu.resizing.Unlock()
	lu.tokens.Changing(bytes, math.MaxInt64-bytes) // what is behind the end will be gone
	if err := lu.resizeStore(bytes); err != nil {
		return fmt.Errorf("volume %q: %w", lu.config.Name, err)
	}
	blocks := uint64(bytes) >> lu.blockShift
	if lu.State().Blocks == blocks {
		return nil
	}
	lu.update(func(s *State) { s.Blocks = blocks })
	lu.tokens.Changing(bytes, math.MaxInt64-bytes) // those that were made meanwhile
	lu.Attention(sense.ASCCapacityChanged, nil)
	return nil
}

// Remeasure makes the logical unit as long as its store is, which is another one than it
// was (backstore.Slot). It does not block; any goroutine may call it.
func (lu *LogicalUnit) Remeasure() {
	changed := false
	lu.update(func(s *State) { // in which a Resize sets what it has done
		blocks := uint64(lu.store.Info().Size) >> lu.blockShift
		s.Blocks, changed = blocks, s.Blocks != blocks
	})
	if changed {
		lu.Attention(sense.ASCCapacityChanged, nil)
	}
}

func (lu *LogicalUnit) resizeStore(bytes int64) error {
	size := int64(lu.config.BlockSize)
	switch {
	case bytes < size:
		return fmt.Errorf("resize to %d bytes: expected at least one block of %d", bytes, size)
	case bytes%size != 0:
		return fmt.Errorf("resize to %d bytes: expected a multiple of the block length %d", bytes, size)
	}
	return backstore.Resize(lu.store, bytes)
}
