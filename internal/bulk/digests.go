package bulk

import (
	"context"
	"errors"

	"lunar/internal/pipeline"
)

// digests reads blocks of a volume and tells the sum of each, by several goroutines. broken
// ends it early.
func digests(v *Volume, size int64, cores int, p *Progress, what string, broken <-chan struct{}, wanted func(int64) bool, tell func(int64, Sum) error) error {
	zero := zeroesOf(size)
	return walk(size, cores, p, what, broken, wanted,
		loading(func(b *pipeline.Block) (bool, error) {
			if n := b.Offset / BlockSize; v.Unmapped(b.Offset, int64(b.Length)) {
				return false, tell(n, zero.of(n))
			}
			return true, v.Read(b.Memory[:b.Length], b.Offset)
		}),
		computing("digest", func(b *pipeline.Block) (bool, error) {
			n := b.Offset / BlockSize
			return true, tell(n, zero.sumOf(n, b.Memory[:b.Length]))
		}))
}

// loading is a stage that has several operations of a store under way.
func loading(work func(*pipeline.Block) (bool, error)) pipeline.Stage {
	return pipeline.Stage{StageConfig: pipeline.StageConfig{Name: "load", Kind: pipeline.Events, Bound: queueBound, Threads: loadDepth}, Work: work}
}

// computing is a stage of as many threads as it needs.
func computing(name string, work func(*pipeline.Block) (bool, error)) pipeline.Stage {
	return pipeline.Stage{StageConfig: pipeline.StageConfig{Name: name, Kind: pipeline.Parallel, Bound: queueBound, Threads: 1}, Work: work}
}

// walk has the blocks of a volume of size bytes pass stages. broken ends it early.
func walk(size int64, cores int, p *Progress, what string, broken <-chan struct{}, wanted func(int64) bool, stages ...pipeline.Stage) error {
	p.begin(what, Blocks(size))
	pool, err := pipeline.NewPool(len(stages)*loadDepth+queueBound, BlockSize)
	if err != nil {
		return err
	}
	free := pipeline.NewSpare(pool)
	run := pipeline.Start(pipeline.Config{Cores: max(cores, 1), Nice: true, Out: free.Put, Stages: stages})
	err = func() error {
		for n := range Blocks(size) {
			p.done.Add(1)
			if !wanted(n) {
				continue
			}
			select {
			case <-broken:
				return errors.New("it was broken off")
			case <-free.Ready:
				b := free.Take()
				b.Offset, b.Length = n*BlockSize, lengthOf(size, n)
				if err := run.Put(b); err != nil {
					return err
				}
			}
		}
		return nil
	}()
	return errors.Join(err, run.Wait(), pool.Close())
}

// Checksum returns the checksum of a volume. Of one that is written, changed and hold are as
// in Origin, and it is that of a moment.
func Checksum(ctx context.Context, o *Origin, cores int, p *Progress) (Sum, error) {
	sums := make([]Sum, Blocks(o.Size))
	note := func(n int64, s Sum) error {
		sums[n] = s
		return nil
	}
	all := func(int64) bool { return true }
	if err := digests(o.Volume, o.Size, cores, p, "read", ctx.Done(), all, note); err != nil {
		return Sum{}, errors.Join(err, ctx.Err())
	}
	zero := zeroesOf(o.Size)
	if o.Changed == nil {
		return zero.checksum(sums), nil
	}
	some := func(v *Volume, blocks []int64, done <-chan struct{}) error {
		in := map[int64]bool{}
		for _, n := range blocks {
			in[n] = true
		}
		return digests(v, o.Size, cores, p, "read again, because it was written meanwhile", done, func(n int64) bool { return in[n] }, note)
	}
	left := o.Changed()
	for range passes {
		if len(left) <= fewBlocks {
			break
		}
		if err := some(o.Volume, left, ctx.Done()); err != nil {
			return Sum{}, errors.Join(err, ctx.Err())
		}
		left = o.Changed()
	}
	if len(left) > 8*fewBlocks {
		return Sum{}, ErrBusy
	}
	err := held(ctx, o, func(ctx context.Context, v *Volume) error {
		return errors.Join(some(v, merged(left, o.Changed()), ctx.Done()), ctx.Err())
	})
	return zero.checksum(sums), err
}
