package tcp

import (
	"fmt"

	"golang.org/x/sys/unix"

	"lunar/internal/arena"
	"lunar/internal/evloop"
	"lunar/target/pdu"
)

// scratch is memory of an event thread that its connections share: it is used by one
// at a time and holds nothing between two calls, so that it stays in the CPU's cache
// however many connections there are.
type scratch struct {
	receive []byte
	readv   [2]unix.Iovec
	sendv   []unix.Iovec
}

// scratchSize is the memory to receive in, in bytes: besides what one read brings, it
// takes the start of a PDU that is not placed yet.
const scratchSize = pdu.BHSLength + pdu.MaxAHSLength + pdu.DigestLength + placeFrom + rxScratch

// rxScratch is what the memory to receive in has beyond the longest data segment: bytes
// read at once, for all connections of the thread in turn.
const rxScratch = 256 << 10

// placeFrom is the data segment length from which the rest of a segment
// is read to where it belongs rather than into the scratch.
const placeFrom = 16 << 10

// maxIOV is how many pieces one sendmsg takes (UIO_MAXIOV).
const maxIOV = 1024

// scratches are those of all event threads. They do not change while connections are
// there.
type scratches map[*evloop.Loop]*scratch

// add makes that of a thread, in memory of its node.
func (all scratches) add(loop *evloop.Loop) error {
	receive, err := arena.Map(scratchSize, loop.Memory())
	if err != nil {
		return fmt.Errorf("event thread %s: %w", loop.Name(), err)
	}
	clear(receive) // now, so that it is there when the first connection comes
	all[loop] = &scratch{receive: receive, sendv: make([]unix.Iovec, maxIOV)}
	return nil
}

// release gives the memory back.
func (all scratches) release() {
	for _, s := range all {
		_ = unix.Munmap(s.receive) // add has mapped it
	}
	clear(all)
}
