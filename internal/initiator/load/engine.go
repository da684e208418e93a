package load

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"

	"lunar/internal/evloop"
	"lunar/internal/initiator"
)

// maxLatency bounds what the histograms tell apart.
const maxLatency = int64(time.Minute)

// drainTime is how long the target may take over the last commands.
const drainTime = 10 * time.Second

var (
	errStopped    = errors.New("stopped before the measurement began")
	errUnanswered = errors.New("commands are still unanswered after the run")
)

// engine is one run. Once the loop runs it belongs to the loop's thread.
//
// Its phases: warm-up, measurement, drain, then with Verify reading back and a
// second drain.
type engine struct {
	loop        *evloop.Loop
	unit        Unit
	workload    Workload
	connections []*connection
	ledger      *ledger // nil without Verify
	payload     []byte  // what writes carry without Verify
	timer       evloop.Timer

	issuing      bool
	measuring    bool
	measured     bool
	readingBack  bool
	readBackDone bool
	readBackFrom uint64 // LBA
	live         int    // commands outstanding
	err          error

	from, to sample // of the measurement
	check    Verification
	failure  *Failure
}

// Run puts the workload on the connections, which must be logged in over TCP to
// the unit's target, and returns when it is over or ctx is done; what was
// measured until then counts. The connections come back usable unless the run
// failed. A miscompare is not an error but part of the Result.
func Run(ctx context.Context, conns []*initiator.Conn, u Unit, w Workload) (*Result, error) {
	if err := w.complete(u); err != nil {
		return nil, err
	}
	e := &engine{unit: u, workload: w, readBackFrom: w.FirstLBA}
	defer e.release()
	if err := e.open(conns); err != nil {
		return nil, err
	}
	e.run(ctx)
	if err := errors.Join(e.err, e.attach()); err != nil {
		return nil, err
	}
	return e.result(), nil
}

func (e *engine) open(conns []*initiator.Conn) (err error) {
	e.loop, err = evloop.New(evloop.Config{Name: "tgtload", CPU: e.workload.CPU, Node: -1, Logger: slog.Default()})
	if err != nil {
		return err
	}
	e.loop.SetBusyPoll(e.workload.Poll)
	if e.workload.Verify {
		e.ledger = newLedger(&e.workload, e.unit.BlockSize)
	} else if err := e.openPayload(); err != nil {
		return err
	}
	for i, state := range conns {
		if err := e.connect(i, len(conns), state); err != nil {
			return err
		}
	}
	return nil
}

// openPayload makes bytes that neither repeat nor compress.
func (e *engine) openPayload() (err error) {
	if e.payload, err = mapBytes(e.workload.largest()); err != nil {
		return err
	}
	noise := ledger{seed: e.workload.Seed}
	noise.fillBlock(e.payload, 0, 1)
	return nil
}

func (e *engine) connect(i, of int, state *initiator.Conn) error {
	c := newConnection(e, i, of, state)
	e.connections = append(e.connections, c)
	if err := c.openSlots(); err != nil {
		return err
	}
	var err error
	if c.fd, err = state.Detach(); err != nil {
		return err
	}
	if err := errors.Join(evloop.SetNonblock(c.fd), evloop.SetNoDelay(c.fd)); err != nil {
		return fmt.Errorf("prepare socket: %w", err)
	}
	return e.loop.Register(c.fd, unix.EPOLLIN, c)
}

func newConnection(e *engine, i, of int, state *initiator.Conn) *connection {
	return &connection{
		engine: e, number: i, lun: initiator.LUN(e.unit.Of(i)), fd: -1, state: state,
		pattern: newPattern(&e.workload, e.unit.BlockSize, i, of),
		pace:    newPace(e.workload.Rate, e.workload.Burst, float64(i)/float64(of)),
		latency: hdrhistogram.New(1, maxLatency, 3),
	}
}

func (c *connection) openSlots() (err error) {
	w := &c.engine.workload
	largest := w.largest()
	// A command's PDUs: itself, Data-Out by segment, a short one per burst;
	// each with two digests and padding at most.
	p := &c.state.Params
	pdus := w.Depth * (3 + largest/p.TargetMaxRecv + largest/p.MaxBurstLength)
	c.outbox.most = w.Send
	c.outbox.iov = make([]unix.Iovec, 0, 2*pdus+1)
	if c.outbox.headers, err = mapBytes(pdus * (headerLength + 3*digestLength)); err != nil {
		return err
	}
	if c.stream.buffer, err = mapBytes(receiveLength); err != nil {
		return err
	}
	c.slots = make([]slot, w.Depth)
	for i := range c.slots {
		s := &c.slots[i]
		s.itt, s.buffer = uint32(i), c.engine.payload
		if w.Verify {
			if s.buffer, err = mapBytes(largest); err != nil {
				return err
			}
		}
		c.free = append(c.free, int32(w.Depth-1-i))
	}
	return nil
}

// run executes the loop on its own thread and waits for its end.
func (e *engine) run(ctx context.Context) {
	e.loop.Post(evloop.Func(e.start))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		e.loop.Run()
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		e.loop.Post(evloop.Func(e.cancel))
		<-ended
	}
}

// attach gives the sockets back to their connections.
func (e *engine) attach() error {
	var errs []error
	for _, c := range e.connections {
		if c.fd >= 0 {
			errs = append(errs, evloop.SetLeast(c.fd, 1), c.state.Attach(c.fd))
			c.fd = -1
		}
	}
	return errors.Join(errs...)
}

// release frees what the garbage collector does not.
func (e *engine) release() {
	if e.loop != nil {
		e.loop.Stop()
	}
	errs := []error{unmapBytes(e.payload)}
	for _, c := range e.connections {
		errs = append(errs, unmapBytes(c.outbox.headers), unmapBytes(c.stream.buffer))
		for i := range c.slots {
			if e.workload.Verify {
				errs = append(errs, unmapBytes(c.slots[i].buffer))
			}
		}
		if c.fd >= 0 {
			errs = append(errs, unix.Close(c.fd))
		}
	}
	if err := errors.Join(errs...); err != nil {
		slog.Error("load engine did not end cleanly", "error", err)
	}
}
