package target_test

import (
	"errors"
	"log/slog"
	"testing"

	"lunar/backstore"
	"lunar/backstore/errstore"
	"lunar/internal/eventually"
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
		var log eventually.Output
		logger := slog.New(slog.NewTextHandler(&log, nil))
		r := newRig(t, rigOptions{store: bomb{ram, later}, config: target.Config{Logger: logger}})
		victim := r.login(initiator.Options{ISID: [6]byte{1}})
		other := r.login(initiator.Options{ISID: [6]byte{2}})
		start(t, victim, initiator.Command{CDB: cdbRead16(13, 1), InLen: 512})
		if _, err := victim.Receive(patience); !errors.Is(err, initiator.ErrClosed) {
			t.Fatalf("later %v: %v, expected the session's end", later, err)
		}
		if log.Count("msg=\"panic in") != 1 {
			t.Fatalf("later %v: %d panics logged, expected 1", later, log.Count("msg=\"panic in"))
		}
		res, err := other.Command(cdbRead16(0, 1), 0, nil, 512)
		mustGood(t, res, err)
		again := r.login(initiator.Options{ISID: [6]byte{1}})
		res, err = again.Command(cdbRead16(0, 1), 0, nil, 512)
		mustGood(t, res, err)
	}
}

// TestPanicReleasesReserve: RESERVE(6) is released like after any other loss of the
// nexus (SPC-2 clause 5.5), whatever else the session had under way.
func TestPanicReleasesReserve(t *testing.T) {
	for _, later := range []bool{false, true} {
		for _, kind := range []backstore.Kind{backstore.Read, backstore.Write, backstore.Flush} {
			ram, err := backstore.NewRAM(1<<20, 512)
			if err != nil {
				t.Fatal(err)
			}
			slow := errstore.Wrap(ram)
			r := newRig(t, rigOptions{store: bomb{slow, later}})
			victim, other := r.login(initiator.Options{ISID: [6]byte{1}}), r.login(initiator.Options{ISID: [6]byte{2}})
			res, err := victim.Command([]byte{0x16, 0, 0, 0, 0, 0}, 0, nil, 0)
			mustGood(t, res, err)
			if res, err := other.Command(make([]byte, 6), 0, nil, 0); err != nil || res.Status != 0x18 {
				t.Fatalf("found %v, %+v, expected a conflict", err, res)
			}
			slow.SetRules(errstore.Rule{Kinds: []backstore.Kind{kind}, Hold: true})
			switch kind {
			case backstore.Read:
				start(t, victim, initiator.Command{CDB: cdbRead16(64, 8), InLen: 4096})
			case backstore.Write:
				start(t, victim, initiator.Command{CDB: cdbWrite16(64, 8), Out: pattern(4096, 1)})
			default:
				start(t, victim, initiator.Command{CDB: []byte{0x35, 9: 0}})
			}
			eventually.Holds(t, "a command is under way", func() bool { return slow.Held() == 1 })
			start(t, victim, initiator.Command{CDB: cdbRead16(13, 1), InLen: 512})
			if _, err := victim.Receive(patience); !errors.Is(err, initiator.ErrClosed) {
				t.Fatalf("later %v: the session goes on", later)
			}
			slow.SetRules()
			slow.Release(-1)
			eventually.Holds(t, "the reservation is released", func() bool {
				res, err := other.Command(make([]byte, 6), 0, nil, 0)
				return err == nil && res.Status == 0
			})
		}
	}
}

// TestPanicLetsOthersWrite: what a command that panicked has kept others from is free.
func TestPanicLetsOthersWrite(t *testing.T) {
	for _, later := range []bool{false, true} {
		ram, err := backstore.NewRAM(1<<20, 512)
		if err != nil {
			t.Fatal(err)
		}
		r := newRig(t, rigOptions{store: bomb{ram, later}})
		victim, other := r.login(initiator.Options{ISID: [6]byte{1}}), r.login(initiator.Options{ISID: [6]byte{2}})
		start(t, victim, initiator.Command{CDB: []byte{0x89, 9: 13, 13: 1, 15: 0}, Out: make([]byte, 1024)}) // COMPARE AND WRITE
		if _, err := victim.Receive(patience); !errors.Is(err, initiator.ErrClosed) {
			t.Fatalf("later %v: the session goes on", later)
		}
		res, err := other.Command(cdbWrite16(64, 8), 0, pattern(4096, 1), 0)
		mustGood(t, res, err)
		res, err = other.Command([]byte{0x89, 9: 64, 13: 1, 15: 0}, 0, append(pattern(512, 1), pattern(512, 2)...), 0)
		mustGood(t, res, err)
	}
}
