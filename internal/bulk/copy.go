package bulk

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"lunar/internal/pipeline"
)

// Copied is what has come of Copy.
type Copied struct {
	Stored   int64 // blocks that were stored now
	Kept     int64 // blocks that the journal had before, as they are
	Checksum Sum
}

// copyTries is how often what is not there as it was stored is stored again.
const copyTries = 3

// Copy copies a volume that nobody writes to another one of the same size, of which the journal
// knows what is there already, and returns when all of that is stable, was read again and is
// equal. After an error it goes on where it was.
func Copy(ctx context.Context, from, to *Volume, j *Journal, cores int, p *Progress) (c Copied, err error) {
	w := &copying{from: from, to: to, journal: j, zero: zeroesOf(j.Size), sums: make([]Sum, len(j.Sums))}
	for range copyTries {
		if err := w.pass(ctx, cores, p); err != nil {
			return c, errors.Join(err, ctx.Err())
		}
		bad, err := w.verify(ctx, cores, p)
		if err != nil {
			return c, errors.Join(err, ctx.Err())
		}
		if bad == 0 {
			return Copied{w.stored.Load(), w.kept.Load(), w.zero.checksum(w.sums)}, j.Believe()
		}
	}
	return c, fmt.Errorf("found blocks that are not as they were stored, %d times: the medium of the copy is faulty", copyTries)
}

type copying struct {
	from, to     *Volume
	journal      *Journal
	zero         *zeroes
	sums         []Sum // of the origin
	stored, kept atomic.Int64
}

// pass stores what is not there.
func (w *copying) pass(ctx context.Context, cores int, p *Progress) error {
	w.kept.Store(0)
	all := func(int64) bool { return true }
	return walk(w.journal.Size, cores, p, "copied", ctx.Done(), all, loading(w.load), computing("digest", w.digest),
		pipeline.Stage{StageConfig: pipeline.StageConfig{Name: "store", Kind: pipeline.Events, Bound: queueBound, Threads: loadDepth}, Work: w.store})
}

func (w *copying) load(b *pipeline.Block) (bool, error) {
	n := b.Offset / BlockSize
	if zero := w.zero.of(n); w.zero.normal(n, w.journal.Sums[n]) == zero && w.from.Unmapped(b.Offset, int64(b.Length)) {
		w.sums[n] = zero
		return false, nil
	}
	return true, w.from.Read(b.Memory[:b.Length], b.Offset)
}

func (w *copying) digest(b *pipeline.Block) (bool, error) {
	n := b.Offset / BlockSize
	w.sums[n] = w.zero.sumOf(n, b.Memory[:b.Length])
	if w.zero.normal(n, w.journal.Sums[n]) != w.sums[n] {
		return true, nil
	}
	if w.journal.Sums[n] != (Sum{}) {
		w.kept.Add(1)
	}
	return false, nil
}

func (w *copying) store(b *pipeline.Block) (_ bool, err error) {
	n := b.Offset / BlockSize
	if w.sums[n] == w.zero.of(n) {
		err = w.to.Zero(b.Offset, int64(b.Length))
	} else {
		err = w.to.Write(b.Memory[:b.Length], b.Offset)
	}
	if err != nil {
		return false, fmt.Errorf("block at %d: %w", b.Offset, err)
	}
	w.stored.Add(1)
	return true, w.journal.Note(n, w.sums[n])
}

// verify reads the copy, and forgets what is not there as it has to be: how many blocks.
func (w *copying) verify(ctx context.Context, cores int, p *Progress) (bad int64, err error) {
	if err := w.to.Flush(); err != nil {
		return 0, err
	}
	var mu sync.Mutex
	all := func(int64) bool { return true }
	err = digests(w.to, w.journal.Size, cores, p, "read again", ctx.Done(), all, func(n int64, s Sum) error {
		if s == w.sums[n] {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		bad++
		return w.journal.Note(n, unknown)
	})
	return bad, err
}
