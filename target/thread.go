package target

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"

	"lunar/backstore"
	"lunar/internal/buf"
	"lunar/internal/debt"
	"lunar/internal/evloop"
	"lunar/target/scsi"
)

// thread is an event thread with what its sessions share. All but loop
// belongs to the thread itself.
type thread struct {
	loop    *evloop.Loop
	gate    *gate
	qos     *qos // of all threads
	shares  shares
	moves   moves
	load    atomic.Int32 // connections, for the choice of a home
	refused refused
	latency latencies

	incidents incidents

	free        *task // recycled tasks
	lanes       map[*scsi.LogicalUnit]backstore.Lane
	sessions    map[*sessionState]struct{}
	backgrounds map[*background]struct{}
	sparePools  []*buf.Pool     // of backgrounds that have ended
	depot       *buf.Depot      // of what is kept to be sent again
	awaitEnd    []func()        // who waits for the end of all backgrounds
	ending      bool            // no background is begun any more
	starved     []*sessionState // those with tasks that wait for memory, in the order in which they began
	far         farQueue        // tasks without a session that wait for memory
	quotas      quotas
	feeding     bool
	feedDue     bool
	feedTask    evloop.Task
	inspection  evloop.Timer
	patience    debt.Clock // that debts and claims are of
}

func newThread(config evloop.Config) (*thread, error) {
	loop, err := evloop.New(config)
	if err != nil {
		return nil, fmt.Errorf("event thread %s: %w", config.Name, err)
	}
	th := &thread{
		loop:     loop,
		lanes:    make(map[*scsi.LogicalUnit]backstore.Lane),
		sessions: make(map[*sessionState]struct{}),
		latency:  newLatencies(loop),
		quotas:   quotas{pool: loop.Pool(), holders: make(map[holderKey]*holder)},
	}
	loop.Pool().SetAside(loop.Pool().Size()/asidePart/scsi.SegmentSize, scsi.SegmentSize)
	th.inspection.Fire, th.patience.Every = th.inspect, inspectionInterval
	th.shares.loop, th.shares.clock, th.moves.loop = loop, evloop.Monotonic, loop
	th.feedTask = evloop.Func(th.feed)
	th.depot = buf.NewDepot(maxDepot, spareDepot, loop.Memory())
	loop.Pool().OnFree(th.freed)
	loop.SetStopwatch(&th.latency)
	return th, nil
}

// lane returns the thread's lane into the logical unit's store, which it opens
// at the first use. A panic of the store is an error.
func (th *thread) lane(lu *scsi.LogicalUnit) (lane backstore.Lane, err error) {
	if lane := th.lanes[lu]; lane != nil {
		return lane, nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	lane, err = lu.Store().Lane(th.loop)
	if err != nil {
		return nil, err
	}
	th.lanes[lu] = lane
	return lane, nil
}

func (th *thread) closeLanes() {
	for lu, lane := range th.lanes {
		lane.Close()
		delete(th.lanes, lu)
	}
}

// close ends what the thread has opened besides its loop.
func (th *thread) close(log *slog.Logger) {
	th.closeLanes()
	if err := errors.Join(th.closePools(), th.depot.Close()); err != nil {
		log.Error("memory of an event thread", "error", err)
	}
}

func (th *thread) add(c *sessionState) {
	th.sessions[c] = struct{}{}
	th.quotas.open(&c.quota, holderOf(&c.session.initiator))
	if !th.inspection.Armed() {
		th.loop.Arm(&th.inspection, inspectionInterval)
		th.patience.Start(th.loop.Now())
	}
}

func (th *thread) remove(c *sessionState) {
	if _, here := th.sessions[c]; here {
		th.quotas.close(&c.quota, holderOf(&c.session.initiator))
	}
	delete(th.sessions, c)
	for i, s := range th.starved {
		if s == c {
			th.starved = append(th.starved[:i], th.starved[i+1:]...)
			break
		}
	}
	c.starved = false
}
