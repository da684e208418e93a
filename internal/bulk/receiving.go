package bulk

import (
	"errors"
	"fmt"
	"sync"

	"lunar/internal/pipeline"
	"lunar/internal/pipeline/rftp"
)

// receiving is a volume that is being received.
type receiving struct {
	Received
	link     SinkLink
	accept   Acceptance
	progress *Progress
	session  uint32
	seal     *sealer
	place    *Place
	unread   bool // what was there before has to be read again at the end
	pool     *pipeline.Pool
	zero     *zeroes
	run      *pipeline.Runner
	base     uint64
	broken   chan struct{}

	mu       sync.Mutex
	sink     *rftp.Sink
	question *rftp.Message  // of the sender, whether everything is stored; nil: there is none
	done     uint64         // blocks that have passed
	storing  map[int64]bool // blocks that are being stored, and read again
	stored   *sync.Cond     // of storing
	latest   []uint64       // sequence of each block that was stored last; 0: none was, in this session
	err      error
}

// prepare makes everything that blocks need, before the sender may send any.
func (r *receiving) prepare(channels int) (err error) {
	r.zero, r.unread = zeroesOf(r.Size), !r.Incremental || !r.place.Verified
	if r.place.Journal.Doubtful {
		if r.unread {
			if _, err := r.read("what was stored before the machine was started is read", r.isStored); err != nil {
				return err
			}
		}
		if err := r.place.Journal.Believe(); err != nil {
			return err
		}
	}
	if err := r.place.Journal.Unfinish(); err != nil {
		return err
	}
	r.Kept = r.place.Journal.Stored()
	r.progress.begin("received", int64(len(r.place.Journal.Sums)))
	if r.seal, err = newSealer(r.link.Key()); err != nil {
		return err
	}
	if r.pool, err = pipeline.NewPool(poolBlocks, stride); err != nil {
		return err
	}
	r.storing, r.latest, r.stored = map[int64]bool{}, make([]uint64, len(r.place.Journal.Sums)), sync.NewCond(&r.mu)
	r.run = pipeline.Start(pipeline.Config{
		Cores: max(r.accept.Cores, 1), Nice: true, Out: r.out,
		Stages: []pipeline.Stage{
			{StageConfig: pipeline.StageConfig{Name: "cipher", Kind: pipeline.Parallel, Bound: poolBlocks, Threads: 1}, Work: r.guarded(r.open)},
			{StageConfig: pipeline.StageConfig{Name: "store", Kind: pipeline.Events, Bound: queueBound, Threads: loadDepth}, Work: r.guarded(r.store)},
			{StageConfig: pipeline.StageConfig{Name: "digest", Kind: pipeline.Parallel, Bound: queueBound, Threads: 1}, Work: r.guarded(r.compare)},
		},
	})
	base, rkey, err := r.link.Expose(r.session, channels, r.pool, lead, frame, func(addr uint64) *pipeline.Block {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.sink == nil { // a channel may come in before Expose has returned
			return nil
		}
		return r.sink.At(addr)
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.base = base
	r.sink = rftp.NewSink(r.pool.Blocks, base, rkey, stride, 1)
	return err
}

func (r *receiving) send(m rftp.Message) error {
	m.Session = r.session
	return r.link.Send(&m)
}

func (r *receiving) grant(c []rftp.Credit) error {
	if len(c) == 0 {
		return nil
	}
	return r.send(rftp.Message{Type: rftp.MRResponse, Credits: c})
}

// arrived takes a block that is there.
func (r *receiving) arrived(m *rftp.Message) error {
	r.mu.Lock()
	b, err := r.sink.Done(m.Addr, m.Flags&rftp.FlagUnused != 0)
	var c []rftp.Credit
	if err == nil {
		c = r.sink.Answer()
	}
	r.mu.Unlock()
	if err == nil && b != nil {
		err = r.run.Put(b)
	}
	if err != nil {
		return err
	}
	return r.grant(c)
}

// guarded has the session end when a stage fails: nobody else may have a reason to look.
func (r *receiving) guarded(work func(*pipeline.Block) (bool, error)) func(*pipeline.Block) (bool, error) {
	return func(b *pipeline.Block) (bool, error) {
		on, err := work(b)
		if err != nil {
			r.tell(err)
			r.fail(err)
		}
		return on, err
	}
}

// open is the first stage.
func (r *receiving) open(b *pipeline.Block) (bool, error) {
	if err := b.Do(pipeline.Sink, pipeline.Queue); err != nil {
		return false, err
	}
	err := r.seal.open(b, r.session, r.Size)
	if errors.Is(err, errDamaged) {
		r.mu.Lock()
		r.Damaged++
		r.mu.Unlock()
		return false, errors.Join(b.Do(pipeline.Sink, pipeline.Release),
			r.send(rftp.Message{Type: rftp.BlockAgain, Sequence: b.Sequence, Addr: r.base + uint64(b.Index)*stride}))
	}
	if err != nil {
		return false, err
	}
	return true, b.Do(pipeline.Sink, pipeline.Process)
}

// store is the stage that stores a block and reads it again. Of two forms of a block the one
// that was sent later is stored, in whatever order they come.
func (r *receiving) store(b *pipeline.Block) (bool, error) {
	if err := b.Do(pipeline.Sink, pipeline.Store); err != nil {
		return false, err
	}
	n := b.Offset / BlockSize
	r.mu.Lock()
	for r.storing[n] && r.err == nil {
		r.stored.Wait()
	}
	old, err := r.latest[n] > b.Sequence, r.err
	if !old && err == nil {
		r.storing[n], r.latest[n] = true, b.Sequence
	}
	r.mu.Unlock()
	switch {
	case err != nil:
		return false, err
	case old:
		return false, b.Do(pipeline.Sink, pipeline.Release)
	}
	if err := r.keep(n, b); err != nil {
		return false, fmt.Errorf("block at %d: %w", b.Offset, err)
	}
	return true, nil
}

// keep writes a block and reads what is there now.
func (r *receiving) keep(n int64, b *pipeline.Block) error {
	v, data := r.place.Volume, payload(b)
	if b.Digest == r.zero.of(n) {
		if err := v.Zero(b.Offset, int64(b.Length)); err != nil || v.Unmapped(b.Offset, int64(b.Length)) {
			clear(data)
			return err
		}
	} else if err := v.Write(data, b.Offset); err != nil {
		return err
	}
	return v.Read(data, b.Offset)
}

// compare is the last stage: a block counts as stored when what was read again is what was
// sent.
func (r *receiving) compare(b *pipeline.Block) (bool, error) {
	n, j := b.Offset/BlockSize, r.place.Journal
	if r.zero.sumOf(n, payload(b)) != b.Digest {
		return false, errors.Join(fmt.Errorf("block at %d: found another one than was stored, when it was read again", b.Offset), j.Note(n, unknown))
	}
	repeated := j.Sums[n] == b.Digest
	if err := j.Note(n, b.Digest); err != nil {
		return false, err
	}
	r.progress.moved.Add(int64(b.Length))
	r.mu.Lock()
	r.Stored++
	if repeated {
		r.Repeated++
	}
	delete(r.storing, n)
	r.stored.Broadcast()
	r.mu.Unlock()
	return true, b.Do(pipeline.Sink, pipeline.Release)
}

// out takes a block back from the line.
func (r *receiving) out(b *pipeline.Block) {
	r.progress.done.Add(1)
	r.mu.Lock()
	r.done++
	var c []rftp.Credit
	if b.State == pipeline.Free { // else the session fails
		c = r.sink.Put(b)
	}
	r.mu.Unlock()
	if err := errors.Join(r.grant(c), r.answer()); err != nil {
		r.fail(err)
	}
}

// answer tells the sender that everything is stored, if it has asked and everything is.
func (r *receiving) answer() error {
	r.mu.Lock()
	q := r.question
	if q == nil || q.Count != r.done || q.Sequence != uint64(r.Damaged) {
		r.mu.Unlock()
		return nil
	}
	r.question = nil
	r.mu.Unlock()
	return r.send(rftp.Message{Type: rftp.DatasetComplete, Flags: rftp.FlagReceived, Count: q.Count, OK: true})
}

// finish makes everything stable, reads again what was there before, and tells the sender
// whether all of it is what was sent.
func (r *receiving) finish(m *rftp.Message) error {
	r.mu.Lock()
	done := r.done
	r.mu.Unlock()
	if done != m.Count {
		return fmt.Errorf("found %d blocks, expected the %d that were sent", done, m.Count)
	}
	if err := r.place.Volume.Flush(); err != nil {
		return err
	}
	bad, err := r.read("what was there before is read again", func(n int64) bool { return r.unread && r.latest[n] == 0 })
	if err != nil {
		return err
	}
	r.Checksum = r.zero.checksum(r.place.Journal.Sums)
	ok := bad == 0 && r.Checksum == Sum(m.Checksum)
	if err := r.send(rftp.Message{Type: rftp.DatasetComplete, Count: done, Checksum: r.Checksum, OK: ok}); err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("found checksum %x and %d blocks that are not as they were stored, expected checksum %x: nothing is served of it; the next try sends what differs", r.Checksum, bad, m.Checksum)
	}
	return errWhole
}

func (r *receiving) isStored(n int64) bool { return r.place.Journal.Sums[n] != (Sum{}) }

// read reads blocks that are wanted, and forgets the sums that are not true: how many.
func (r *receiving) read(what string, wanted func(int64) bool) (bad int64, err error) {
	var mu sync.Mutex
	j := r.place.Journal
	err = digests(r.place.Volume, r.Size, r.accept.Cores, r.progress, what, r.broken, wanted, func(n int64, s Sum) error {
		if r.zero.normal(n, j.Sums[n]) == s {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		bad++
		return j.Note(n, unknown)
	})
	return bad, err
}

// fail ends the session. The first reason counts.
func (r *receiving) fail(err error) {
	r.mu.Lock()
	first := r.err == nil
	if first {
		r.err = err
	}
	if r.stored != nil {
		r.stored.Broadcast()
	}
	r.mu.Unlock()
	if first {
		close(r.broken)
		_ = r.link.Close()
	}
}

func (r *receiving) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// tell tells the sender why the session ends, if it can be told.
func (r *receiving) tell(err error) {
	if r.failure() == nil {
		_ = r.send(rftp.Message{Type: rftp.Failed, Text: err.Error()})
	}
}

// close gives memory back once nobody uses it.
func (r *receiving) close() {
	if r.run != nil {
		r.run.Fail(r.failure())
		_ = r.run.Wait()
	}
	r.link.Wait()
	if r.pool != nil {
		_ = r.pool.Close()
	}
}
