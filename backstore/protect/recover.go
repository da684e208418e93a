package protect

import (
	"fmt"
	"log/slog"

	"lunar/backstore"
	"lunar/internal/buf"
	"lunar/internal/evloop"
)

// recoverSpan is how much data is looked at at once, in bytes.
const recoverSpan = 256 << 10

// recover makes the tuples of regions anew that were being changed when the server
// or the machine stopped: only those that do not fit, so that tags of initiators
// stay where they are right.
func (s *Store) recover(log *journal, logger *slog.Logger) error {
	var list []int
	for i := range s.shape.regions() {
		if log.has(i) {
			list = append(list, i)
		}
	}
	for _, sector := range log.damaged {
		from := int64(sector*sectorBits*8) << s.shape.regionShift()
		if from >= s.shape.size {
			continue
		}
		logger.Error("the log of writes under way is damaged: if the server did not end in order, blocks that were being written may be reported as wrong until they are written again",
			"store", s.data.Info().Describe, "from", from, "to", min(from+sectorBits*8<<s.shape.regionShift(), s.shape.size))
	}
	if len(list)+len(log.damaged) == 0 || s.data.Info().ReadOnly {
		return nil
	}
	if len(list) == 0 {
		return log.write(func(int) bool { return false })
	}
	logger = logger.With("store", s.data.Info().Describe)
	r := &recovery{store: s, anew: anew{log: logger}}
	if err := r.do(list, logger); err != nil {
		return fmt.Errorf("make it anew after a crash: %w", err)
	}
	r.anew.end()
	s.anew = r.anew.sum
	logger.Info("protection information of regions that were being written was looked at", "regions", len(list), "blocks-made-anew", s.anew)
	return log.write(func(int) bool { return false })
}

// recovery reads regions one span after the other on a loop of its own.
type recovery struct {
	store        *Store
	loop         *evloop.Loop
	data, tuples backstore.Lane
	anew         anew
}

func (r *recovery) do(regions []int, logger *slog.Logger) (err error) {
	workers := evloop.NewWorkers(1)
	defer workers.Close()
	r.loop, err = evloop.New(evloop.Config{
		Name: "protect", CPU: -1, Node: -1, Buffers: 2 * recoverSpan, RingEntries: 16, Workers: workers, Logger: logger,
	})
	if err != nil {
		return err
	}
	go r.loop.Run()
	defer r.loop.Stop()
	if err := r.open(); err != nil {
		return err
	}
	defer r.on(func() { r.data.Close(); r.tuples.Close() })
	for _, region := range regions {
		r.anew.enter(region)
		if err := r.region(region); err != nil {
			return err
		}
	}
	return r.run(r.tuples, backstore.Op{Kind: backstore.Flush})
}

func (r *recovery) open() (err error) {
	if r.data, err = r.store.data.Lane(r.loop); err != nil {
		return err
	}
	r.tuples, err = r.store.tuples.Lane(r.loop)
	return err
}

// on runs f on the loop and waits for it.
func (r *recovery) on(f func()) {
	done := make(chan struct{})
	r.loop.Post(evloop.Func(func() { defer close(done); f() }))
	<-done
}

// run makes an operation and waits for it.
func (r *recovery) run(l backstore.Lane, op backstore.Op) error {
	done := make(chan struct{})
	op.Done = func(*backstore.Op) { close(done) }
	r.loop.Post(evloop.Func(func() {
		if l.TryNow(&op) || l.Submit(&op) {
			close(done)
		}
	}))
	<-done
	return op.Err
}

// region looks at a region's blocks.
func (r *recovery) region(i int) error {
	s := r.store.shape
	from := int64(i) << s.regionShift()
	to := min(from+1<<s.regionShift(), s.size)
	var memory [2]*buf.Ref
	r.on(func() {
		memory[0], memory[1] = r.loop.Pool().Get(recoverSpan), r.loop.Pool().Get(recoverSpan/s.block*TupleSize)
	})
	defer r.on(func() { memory[0].Release(); memory[1].Release() })
	for ; from < to; from += recoverSpan {
		n := min(recoverSpan, to-from)
		if err := r.span(from, memory[0].Bytes()[:n], memory[1].Bytes()[:n/int64(s.block)*TupleSize]); err != nil {
			return err
		}
	}
	return nil
}

// span looks at the blocks at off.
func (r *recovery) span(off int64, data, tuples []byte) error {
	s := r.store.shape
	first := off / int64(s.block)
	at := tupleOffset + first*TupleSize
	if err := r.run(r.data, backstore.Op{Kind: backstore.Read, Off: off, Data: data}); err != nil {
		return err
	}
	if err := r.run(r.tuples, backstore.Op{Kind: backstore.Read, Off: at, Data: tuples}); err != nil {
		return err
	}
	invert(tuples)
	changed := false
	for i := 0; i < len(data)/s.block; i++ {
		block, t := data[i*s.block:(i+1)*s.block], Tuple(tuples[i*TupleSize:(i+1)*TupleSize])
		if !t.Escaped(s.kind) && t.Guard() != Guard(block) {
			Generate(s.kind, s.block, block, t, uint32(first)+uint32(i))
			r.anew.add(uint64(first) + uint64(i))
			changed = true
		}
	}
	if !changed {
		return nil
	}
	invert(tuples)
	return r.run(r.tuples, backstore.Op{Kind: backstore.Write, Off: at, Data: tuples})
}
