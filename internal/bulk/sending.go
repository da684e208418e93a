package bulk

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"lunar/internal/pipeline"
	"lunar/internal/pipeline/rftp"
)

const (
	poolBlocks  = 32 // of each side
	loadDepth   = 4  // blocks that are read or written at a time
	queueBound  = 4  // blocks between stages
	mostAgain   = 3  // times that a damaged block is asked for again
	mostChannel = 8
)

// sending is a volume that is being sent.
type sending struct {
	link     SourceLink
	origin   *Origin
	options  Options
	progress *Progress
	session  uint32
	seal     *sealer
	pool     *pipeline.Pool
	free     *pipeline.Spare
	zero     *zeroes
	theirs   []Sum // what the receiver has
	known    []Sum // what need not be read; nil: nothing
	sums     []Sum // what was read last; each is written by one stage at a time

	sent, same, altered, again atomic.Int64
	reads                      atomic.Int64
	sequence                   atomic.Uint64
	settled                    chan rftp.Message // the receiver has everything that was sent
	damaged                    chan struct{}     // something is to be sent again
	whole                      chan rftp.Message // it has looked at everything
	broken                     chan struct{}     // closed by the first failure
	left                       <-chan error      // how a pass ends that was ended early, of who sends; nil: none is left

	mu       sync.Mutex
	source   *rftp.Source
	under    map[*pipeline.Block]func(bool, error) // what the network has, with who waits for it
	at       map[uint64]int64                      // the block that was written last with each credit
	redo     []int64                               // damaged blocks
	asked    map[int64]int                         // how often for each of them
	answered uint64                                // damaged blocks that were taken from redo
	err      error
}

// greet agrees with the receiver on everything.
func greet(link SourceLink, o *Origin, x Options) (*sending, error) {
	s := &sending{
		link: link, origin: o, options: x, progress: x.Progress, zero: zeroesOf(o.Size),
		theirs: make([]Sum, Blocks(o.Size)), known: o.Known, sums: make([]Sum, Blocks(o.Size)),
		settled: make(chan rftp.Message, 1), damaged: make(chan struct{}, 1), whole: make(chan rftp.Message, 1), broken: make(chan struct{}),
		source: rftp.NewSource(link.Ordered()), under: map[*pipeline.Block]func(bool, error){}, at: map[uint64]int64{}, asked: map[int64]int{},
	}
	if s.progress == nil {
		s.progress = &Progress{}
	}
	var id [4]byte
	_, _ = rand.Read(id[:]) // never fails
	s.session = binary.BigEndian.Uint32(id[:])
	channels, err := s.agree(x)
	if err == nil {
		s.seal, err = newSealer(link.Key())
	}
	if err != nil {
		return nil, err
	}
	if s.pool, err = pipeline.NewPool(poolBlocks, stride); err != nil {
		return nil, err
	}
	s.free = pipeline.NewSpare(s.pool)
	if err := link.Open(s.session, channels, s.pool); err != nil {
		return nil, errors.Join(err, s.pool.Close())
	}
	return s, nil
}

// agree asks for block size, channels and session.
func (s *sending) agree(x Options) (channels int, err error) {
	if m, err := s.ask(rftp.Message{Type: rftp.BlockSizeReq, Size: BlockSize}, rftp.BlockSizeRsp); err != nil {
		return 0, err
	} else if !m.OK {
		return 0, fmt.Errorf("the receiver wants other blocks than those of %d bytes", BlockSize)
	}
	m, err := s.ask(rftp.Message{Type: rftp.ChannelsReq, Count: uint64(min(max(x.Channels, 1), mostChannel))}, rftp.ChannelsRsp)
	if err != nil {
		return 0, err
	}
	channels = max(int(m.Count), 1)
	s.progress.begin("waits for the receiver to look at what it has", 0)
	flags := uint8(0)
	if x.Incremental {
		flags = rftp.FlagIncremental
	}
	m, err = s.ask(rftp.Message{
		Type: rftp.SessionReq, Flags: flags, Name: s.origin.Name, Size: uint64(s.origin.Size), Unit: uint32(s.origin.Unit), Physical: uint32(s.origin.Physical),
	}, rftp.SessionRsp)
	if err != nil {
		return 0, err
	}
	if !m.OK {
		return 0, fmt.Errorf("the receiver refuses: %s", m.Text)
	}
	for at, last := 0, false; !last; {
		if m, err = s.expect(rftp.Digests); err != nil {
			return 0, err
		}
		for _, sum := range m.Sums {
			if at == len(s.theirs) {
				return 0, errors.New("found more digests of the receiver's than the volume has blocks")
			}
			s.theirs[at] = sum
			at++
		}
		last = m.Flags&rftp.FlagLast != 0
	}
	return channels, nil
}

func (s *sending) ask(m rftp.Message, answer rftp.Type) (rftp.Message, error) {
	m.Session = s.session
	if err := s.link.Send(&m); err != nil {
		return m, err
	}
	return s.expect(answer)
}

func (s *sending) expect(answer rftp.Type) (rftp.Message, error) {
	m, err := s.link.Receive()
	switch {
	case err != nil:
		return m, err
	case m.Type == rftp.Failed:
		return m, fmt.Errorf("the receiver has ended it: %s", m.Text)
	case m.Type != answer:
		return m, fmt.Errorf("found %v, expected %v", m.Type, answer)
	}
	return m, nil
}

// pass sends blocks, as far as the receiver has others there. When it returns nothing reads
// them any more. The end of ctx ends it early, with the session intact: what was read by then
// may be on its way as long as the receiver takes for it, and rest waits for that.
func (s *sending) pass(ctx context.Context, what string, blocks []int64, v *Volume) error {
	s.progress.begin(what, int64(len(blocks)))
	var reading sync.RWMutex
	over := false // under reading
	run := pipeline.Start(pipeline.Config{
		Cores: max(s.options.Cores, 1), Nice: true, Out: s.out,
		Stages: []pipeline.Stage{
			{StageConfig: pipeline.StageConfig{Name: "load", Kind: pipeline.Events, Bound: queueBound, Threads: loadDepth}, Work: func(b *pipeline.Block) (bool, error) {
				reading.RLock()
				defer reading.RUnlock()
				if over {
					return false, b.Do(pipeline.Source, pipeline.Release)
				}
				return s.load(v, b)
			}},
			{StageConfig: pipeline.StageConfig{Name: "digest", Kind: pipeline.Parallel, Bound: queueBound, Threads: 1}, Work: s.digest},
			{StageConfig: pipeline.StageConfig{Name: "cipher", Kind: pipeline.Parallel, Bound: queueBound, Threads: 1}, Work: s.cipher},
			{StageConfig: pipeline.StageConfig{Name: "network", Kind: pipeline.Hybrid, Bound: queueBound, Threads: poolBlocks}, Begin: s.write},
		},
	})
	err := s.feed(ctx, run, blocks)
	ended := make(chan error, 1)
	go func() { ended <- run.Wait() }()
	select {
	case failed := <-ended:
		return errors.Join(err, failed)
	case <-ctx.Done():
		s.left = ended
		reading.Lock()
		defer reading.Unlock()
		over = true
		return ctx.Err()
	}
}

// rest waits for what a pass that was ended early has left on its way.
func (s *sending) rest() (err error) {
	if s.left != nil {
		err = <-s.left
		s.left = nil
	}
	return err
}

// feed puts blocks into the line, not faster than they may be read.
func (s *sending) feed(ctx context.Context, run *pipeline.Runner, blocks []int64) error {
	began := time.Now()
	for i, n := range blocks {
		if s.options.Rate > 0 {
			due := began.Add(time.Duration(float64(i) * BlockSize / float64(s.options.Rate) * float64(time.Second)))
			select {
			case <-time.After(time.Until(due)):
			case <-ctx.Done():
				return ctx.Err()
			case <-s.broken:
				return s.failure()
			}
		}
		select {
		case <-s.free.Ready:
		case <-ctx.Done():
			return ctx.Err()
		case <-s.broken:
			return s.failure()
		}
		b := s.free.Take()
		b.Session, b.Offset, b.Length = s.session, n*BlockSize, lengthOf(s.origin.Size, n)
		if err := b.Do(pipeline.Source, pipeline.Take); err != nil {
			return err
		}
		if err := run.Put(b); err != nil {
			return err
		}
	}
	return nil
}

// load is the first stage.
func (s *sending) load(v *Volume, b *pipeline.Block) (bool, error) {
	n := b.Offset / BlockSize
	if zero := s.zero.of(n); s.zero.normal(n, s.theirs[n]) == zero && !s.repeats(n) && v.Unmapped(b.Offset, int64(b.Length)) {
		s.have(n, zero)
		return false, b.Do(pipeline.Source, pipeline.Release)
	}
	if s.isKnown(n) && !s.repeats(n) {
		s.have(n, s.known[n])
		return false, b.Do(pipeline.Source, pipeline.Release)
	}
	s.reads.Add(1)
	if err := v.Read(payload(b), b.Offset); err != nil {
		return false, fmt.Errorf("block at %d: %w", b.Offset, err)
	}
	return true, b.Do(pipeline.Source, pipeline.Fill)
}

// isKnown reports whether a block need not be read, because its sum is known and the
// receiver has it.
func (s *sending) isKnown(block int64) bool {
	return s.known != nil && s.known[block] != (Sum{}) && s.zero.normal(block, s.theirs[block]) == s.known[block]
}

// have notes the sum of a block, and reports whether the receiver has it.
func (s *sending) have(block int64, sum Sum) bool {
	s.sums[block] = sum
	if s.zero.normal(block, s.theirs[block]) != sum {
		s.theirs[block] = sum
		return false
	}
	s.same.Add(1)
	return true
}

// digest is the second stage.
func (s *sending) digest(b *pipeline.Block) (bool, error) {
	if err := b.Do(pipeline.Source, pipeline.Queue); err != nil {
		return false, err
	}
	n := b.Offset / BlockSize
	sum := s.zero.sumOf(n, payload(b))
	again := s.repeats(n)
	b.Digest = sum
	if s.have(n, sum) && !again {
		return false, b.Do(pipeline.Source, pipeline.Release)
	}
	return true, b.Do(pipeline.Source, pipeline.Process)
}

// repeats reports whether a block was damaged: the receiver has not what it was sent.
func (s *sending) repeats(block int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[block] > 0
}

// cipher is the third stage.
func (s *sending) cipher(b *pipeline.Block) (bool, error) {
	if err := b.Do(pipeline.Source, pipeline.Queue); err != nil {
		return false, err
	}
	b.Sequence = s.sequence.Add(1)
	s.seal.seal(b)
	return true, b.Do(pipeline.Source, pipeline.Process)
}

// write begins the last stage.
func (s *sending) write(b *pipeline.Block, done func(bool, error)) {
	s.mu.Lock()
	if s.err != nil {
		err := s.err
		s.mu.Unlock()
		done(false, err)
		return
	}
	s.under[b] = done
	s.source.Loaded(b)
	s.mu.Unlock()
	s.post()
}

// post writes what there are credits for, or asks for one.
func (s *sending) post() {
	s.mu.Lock()
	for s.err == nil {
		b, c, err := s.source.Post()
		if err != nil {
			s.mu.Unlock()
			s.fail(err)
			return
		}
		if b == nil {
			break
		}
		s.at[c.Addr] = b.Offset / BlockSize
		s.link.Write(b, framed(b, s.seal != nil), c, func(err error) { s.written(b, err) })
	}
	asks := s.err == nil && s.source.Asks()
	s.mu.Unlock()
	if asks {
		s.message(&rftp.Message{Type: rftp.MRRequest})
	}
}

func (s *sending) message(m *rftp.Message) {
	m.Session = s.session
	if err := s.link.Send(m); err != nil {
		s.failLater(err)
	}
}

// written hears how a block has ended.
func (s *sending) written(b *pipeline.Block, failed error) {
	s.mu.Lock()
	if s.err != nil { // who has waited knows
		s.mu.Unlock()
		return
	}
	m, err := s.source.Completed(b, failed == nil)
	done := s.under[b]
	if failed == nil {
		delete(s.under, b)
	}
	s.mu.Unlock()
	switch {
	case err != nil:
		s.fail(err)
	case failed != nil: // its channel is gone, and with it the session
		s.failLater(failed)
	case done != nil:
		if m != nil {
			s.message(m)
		}
		s.sent.Add(1)
		s.progress.moved.Add(int64(b.Length))
		done(true, nil)
		return
	}
}

// out takes a block back from the line.
func (s *sending) out(b *pipeline.Block) {
	s.progress.done.Add(1)
	b.State = pipeline.Free // after a failure it may be in any
	s.free.Put(b)
}

func (s *sending) result() Sent {
	return Sent{Blocks: int64(len(s.sums)), Read: s.reads.Load(), Sums: s.sums, Sent: s.sent.Load(), Same: s.same.Load(), Altered: s.altered.Load(), Again: s.again.Load(), Checksum: s.zero.checksum(s.sums)}
}

// close ends the link, and gives memory back once nobody writes from it.
func (s *sending) close() {
	s.fail(errors.New("it has ended"))
	s.link.Wait()
	_ = s.pool.Close()
}
