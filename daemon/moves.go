package daemon

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"lunar/backstore"
	"lunar/control"
	"lunar/control/server"
	"lunar/internal/bulk"
	"lunar/internal/evloop"
)

// moves are the volumes that are sent, received or read as a whole now. They have an event
// thread of their own, so that no initiator's waits for them.
type moves struct {
	mu   sync.Mutex
	by   map[string]*move // of each volume
	past control.Moves    // what has ended

	known map[string]*bulk.Known // of each volume whose moves are incremental
	loop  *evloop.Loop           // made for the first of them
	work  *evloop.Workers
}

// purpose is what a volume moves for.
type purpose uint8

const (
	comparing purpose = iota // or any other reading of all of it
	sending
	receiving
)

// move is one of them.
type move struct {
	purpose
	path     string // that a volume is received to
	progress bulk.Progress
	ctx      context.Context // ends when it is cancelled, the volume goes, or the server stops
	cancel   context.CancelFunc
	ended    chan struct{}
}

const (
	moveBuffers = 8 << 20 // of the event thread, in bytes
	moveRing    = 128
	moveWorkers = 4
)

// begin notes a move of a volume, to a path if it is received; end of it follows.
func (s *moves) begin(life context.Context, volume string, p purpose, path string) (*move, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil {
		s.by = map[string]*move{}
	}
	if s.by[volume] != nil {
		return nil, errors.New("it is being sent, received or read as a whole already")
	}
	for name, m := range s.by {
		if path != "" && m.path == path {
			return nil, fmt.Errorf("volume %s is being received there", name)
		}
	}
	if life.Err() != nil {
		return nil, errors.New("the server is stopping")
	}
	m := &move{purpose: p, path: path, ended: make(chan struct{})}
	m.ctx, m.cancel = context.WithCancel(life)
	s.by[volume] = m
	return m, nil
}

// end notes how a move has ended.
func (s *moves) end(volume string, m *move, err error) {
	s.mu.Lock()
	delete(s.by, volume)
	m.count(&s.past)
	if n := m.outcome(&s.past, err); n != nil {
		*n++
	}
	s.mu.Unlock()
	m.cancel()
	close(m.ended)
}

// outcome is the counter of moves that end like this one; nil: there is none.
func (m *move) outcome(of *control.Moves, err error) *uint64 {
	switch {
	case m.purpose == sending && err == nil:
		return &of.Sent
	case m.purpose == sending:
		return &of.SendsFailed
	case m.purpose == receiving && err == nil:
		return &of.Received
	case m.purpose == receiving:
		return &of.ReceiptsFailed
	}
	return nil
}

// count adds what has gone over the network.
func (m *move) count(to *control.Moves) {
	switch n := uint64(m.progress.Moved()); m.purpose {
	case sending:
		to.SentBytes += n
	case receiving:
		to.ReceivedBytes += n
	}
}

// status is what is told of all.
func (s *moves) status() control.Moves {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.past
	now.UnderWay = len(s.by)
	for _, m := range s.by {
		m.count(&now)
	}
	return now
}

// cancel ends the move of a volume, if there is one, and waits for it.
func (s *moves) cancel(volume string) {
	s.mu.Lock()
	m := s.by[volume]
	s.mu.Unlock()
	if m != nil {
		m.cancel()
		<-m.ended
	}
}

// has reports whether a volume moves now.
func (s *moves) has(volume string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.by[volume] != nil
}

// thread is the event thread of all moves.
func (s *moves) thread() (*evloop.Loop, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loop != nil {
		return s.loop, nil
	}
	s.work = evloop.NewWorkers(moveWorkers)
	loop, err := evloop.New(evloop.Config{Name: "moves", CPU: -1, Node: -1, Buffers: moveBuffers, RingEntries: moveRing, Workers: s.work})
	if err != nil {
		s.work.Close()
		return nil, err
	}
	go loop.Run()
	s.loop = loop
	return loop, nil
}

// close waits for all moves, whose context has ended, and ends their thread.
func (s *moves) close() {
	s.mu.Lock()
	all := make([]*move, 0, len(s.by))
	for _, m := range s.by {
		all = append(all, m)
	}
	s.mu.Unlock()
	for _, m := range all {
		<-m.ended
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loop != nil {
		s.work.Close()
		s.loop.Stop()
		s.loop = nil
	}
}

// moveCores are the cores that digests and ciphers of a move may use together: half of them.
func moveCores() int { return max(runtime.NumCPU()/2, 1) }

// telling has a job tell how far the move is, and lets it be cancelled.
func (m *move) telling(by server.Asker, what string) (ended func()) {
	untold := by.Awaits(func() control.Progress {
		part, percent := m.progress.Now()
		return control.Progress{What: what + ": " + part, Percent: &percent}
	})
	unstoppable := by.Stoppable(m.cancel)
	return func() {
		unstoppable()
		untold()
	}
}

// reading is an open volume that a move reads, while initiators may use it.
type reading struct {
	*move
	slot    *backstore.Slot
	loop    *evloop.Loop
	origin  bulk.Origin
	changes *backstore.Changes // that are noted for this move alone; nil: there is a Known
}

// readWhole begins to read a volume as a whole. Close ends it.
func (a *applier) readWhole(by server.Asker, volume string, p purpose) (r *reading, err error) {
	if err := by.Begin(); err != nil {
		return nil, err
	}
	a.changing.Lock()
	defer a.changing.Unlock()
	open, v := a.daemon.assembly.Open[volume], a.daemon.config.Load().Volume(volume)
	if open == nil || v == nil || open.Slot.Empty() {
		return nil, errors.New("found no such volume that is served")
	}
	if a.frozen.of(volume) != nil {
		return nil, errors.New("it is frozen, and nobody reads it until it thaws (lunar volume thaw)")
	}
	info := open.Slot.Info()
	if err := bulk.CheckRoom(info.Size); err != nil {
		return nil, err
	}
	loop, err := a.moves.thread()
	if err != nil {
		return nil, err
	}
	m, err := a.moves.begin(a.life, volume, p, "")
	if err != nil {
		return nil, err
	}
	r = &reading{move: m, slot: open.Slot, loop: loop, origin: bulk.Origin{Name: volume, Size: info.Size, Unit: v.BlockSize, Physical: info.PhysicalBlock}}
	return r, nil
}

// heldMost is how long commands are held at most until those that are under way have ended, so that
// changes are noted from then on, or no more.
const heldMost = 5 * time.Second

// begin has changes noted, and opens the volume beside the initiators. What is known need not
// be read; nil: nothing is.
func (r *reading) begin(known *bulk.Known) (err error) {
	if known == nil {
		changes := backstore.NewChanges(r.origin.Size, bulk.BlockSize)
		ctx, cancel := context.WithTimeout(r.ctx, heldMost)
		defer cancel()
		if err := r.slot.Track(ctx, changes); err != nil {
			return err
		}
		r.changes, r.origin.Changed = changes, changes.Take
	} else if r.origin.Known, err = known.Sums(); err != nil {
		return err
	} else {
		r.origin.Changed = known.Changed
	}
	r.origin.Hold = r.hold
	r.origin.Volume, err = bulk.OpenVolume(r.loop, r.slot)
	return err
}

// hold calls last while no operation is under way on the volume, and none begins.
func (r *reading) hold(ctx context.Context, last func(context.Context, *bulk.Volume) error) error {
	return r.slot.Exchange(ctx, func(store backstore.Store) (backstore.Store, error) {
		held, err := bulk.OpenVolume(r.loop, store)
		if err != nil {
			return store, err
		}
		defer held.Close()
		return store, last(ctx, held)
	})
}

// close ends it, which has failed with an error.
func (r *reading) close(a *applier, failed error) error {
	if r.origin.Volume != nil {
		r.origin.Volume.Close()
	}
	err := failed
	if r.changes != nil {
		ctx, cancel := context.WithTimeout(context.Background(), heldMost)
		defer cancel()
		if left := r.slot.Untrack(ctx, r.changes); !errors.Is(left, ctx.Err()) { // else they are noted for nobody
			err = errors.Join(err, left)
		}
	}
	a.moves.end(r.origin.Name, r.move, err)
	return err
}

// notMoved is why a move was not made, or broken off.
func notMoved(what string, err error) error {
	if r := (*control.Refusal)(nil); err == nil || errors.As(err, &r) {
		return err
	}
	why := err.Error()
	if errors.Is(err, context.Canceled) {
		why = "it was cancelled, or the volume or the server has come to its end"
	}
	return &control.Refusal{What: what, State: true, Reasons: []control.Reason{{Text: why}}}
}

// Checksum implements server.Source.
func (s *source) Checksum(by server.Asker, volume string) (control.VolumeChecksum, error) {
	out, err := s.changes.checksum(by, volume)
	return out, notMoved(fmt.Sprintf("volume %s was not read", volume), err)
}
