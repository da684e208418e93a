package target_test

import (
	"errors"
	"log/slog"
	"testing"

	"lunar/backstore"
	"lunar/internal/evloop"
	"lunar/internal/initiator"
	"lunar/target"
)

// bomb is a store that panics when block 13 is read, at once or later on the
// event thread.
type bomb struct {
	backstore.Store
	later bool
}

type bombLane struct {
	backstore.Lane
	loop  *evloop.Loop
	later bool
}

func (b bomb) Lane(l *evloop.Loop) (backstore.Lane, error) {
	lane, err := b.Store.Lane(l)
	return bombLane{lane, l, b.later}, err
}

func (b bombLane) TryNow(op *backstore.Op) bool {
	if op.Kind != backstore.Read || op.Off != 13*512 {
		return b.Lane.TryNow(op)
	}
	if !b.later {
		panic("block 13")
	}
	return false
}

func (b bombLane) Submit(op *backstore.Op) bool {
	if op.Kind != backstore.Read || op.Off != 13*512 {
		return b.Lane.Submit(op)
	}
	b.loop.Post(evloop.Func(func() {
		op.Err = explosive{} // what makes sense of it panics
		op.Done(op)
	}))
	return false
}

type explosive struct{}

func (explosive) Error() string { return "explosive" }

func (explosive) Is(error) bool { panic("error that cannot be judged") }

// A panic in a session ends that session, not the server.
func TestPanicEndsOneSession(t *testing.T) {
	for _, later := range []bool{false, true} {
		ram, err := backstore.NewRAM(1<<20, 512)
		if err != nil {
			t.Fatal(err)
		}
		var log lockedBuffer
		logger := slog.New(slog.NewTextHandler(&log, nil))
		r := newRig(t, rigOptions{store: bomb{ram, later}, config: target.Config{Logger: logger}})
		victim := r.login(initiator.Options{ISID: [6]byte{1}})
		other := r.login(initiator.Options{ISID: [6]byte{2}})
		start(t, victim, initiator.Command{CDB: cdbRead16(13, 1), InLen: 512})
		if _, err := victim.Receive(patience); !errors.Is(err, initiator.ErrClosed) {
			t.Fatalf("later %v: %v, expected the session's end", later, err)
		}
		if log.count("msg=\"panic in") != 1 {
			t.Fatalf("later %v: %d panics logged, expected 1", later, log.count("msg=\"panic in"))
		}
		res, err := other.Command(cdbRead16(0, 1), 0, nil, 512)
		mustGood(t, res, err)
		again := r.login(initiator.Options{ISID: [6]byte{1}})
		res, err = again.Command(cdbRead16(0, 1), 0, nil, 512)
		mustGood(t, res, err)
	}
}
