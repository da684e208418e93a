package bulk_test

import (
	"context"
	"testing"

	"lunar/internal/bulk"
	"lunar/internal/pipeline"
)

// early is the link of a sender whose first block is there before any credit is.
type early struct {
	bulk.SinkLink
	t *testing.T
}

func (l *early) Expose(session uint32, n int, pool *pipeline.Pool, lead, length int, at func(uint64) *pipeline.Block) (uint64, uint32, error) {
	base, rkey, err := l.SinkLink.Expose(session, n, pool, lead, length, at)
	if at(base) != nil { // as a data channel asks that has come in by then
		l.t.Error("found a block for which no credit is out")
	}
	return base, rkey, err
}

// TestEarlyBlock: a block that comes as soon as its channel may come in, and before there are credits,
// ends no server.
func TestEarlyBlock(t *testing.T) {
	from, to := newMedium(t, mib), newSide(t, mib)
	accept := to.door.accept
	to.door.accept = func(ctx context.Context) (bulk.SinkLink, error) {
		link, err := accept(ctx)
		return &early{link, t}, err
	}
	from.fill(t, 1)
	move(t, from, to, origin(from))
}
