package profile

import (
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"lunar/backstore"
	"lunar/backstore/errstore"
	"lunar/backstore/memstore"
	"lunar/internal/evloop"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func config(depth int) Config {
	return Config{Depth: depth, Duration: 20 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
}

// TestMeasure: stores that end reads at once and later are read all the time,
// by whole blocks inside of them and with no more under way than the depth.
func TestMeasure(t *testing.T) {
	const depth, size = 8, 1<<20 + 512 // the rest of a block is not read
	file, err := backstore.OpenFile(backstore.FileConfig{Path: filepath.Join(t.TempDir(), "v"), Size: size, BlockSize: 512, Logger: config(0).Logger})
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for name, store := range map[string]backstore.Store{"at once": memory(t, size, false), "later": memory(t, size, true), "file": file} {
		seen := &watched{Store: store, offsets: map[int64]bool{}}
		result, err := Measure(seen, config(depth))
		if err != nil || result.Reads == 0 || result.IOPS() == 0 || result.Elapsed <= 0 {
			t.Errorf("%s: found %+v, %v, expected reads", name, result, err)
		}
		if seen.reads != result.Reads || seen.most > depth || seen.wrong > 0 || len(seen.offsets) < 2 || !seen.closed {
			t.Errorf("%s: found %d reads, %d under way, %d of another kind or place, %d places, lane closed %v; expected %d reads",
				name, seen.reads, seen.most, seen.wrong, len(seen.offsets), seen.closed, result.Reads)
		}
	}
}

// TestFailure: a read that fails is the result, and all others end first.
func TestFailure(t *testing.T) {
	broken := errors.New("broken")
	for name, rule := range map[string]errstore.Rule{
		"first": {Err: broken}, "later": {Err: broken, Async: true}, "in between": {Err: broken, After: 100, Times: 1},
	} {
		patient := config(8)
		patient.Duration = time.Minute // a failure comes before
		if _, err := Measure(errstore.Wrap(memory(t, 1<<20, true), rule), patient); !errors.Is(err, broken) {
			t.Errorf("%s: found %v, expected the store's error", name, err)
		}
	}
	if _, err := Measure(memory(t, 512, false), config(8)); err == nil {
		t.Error("found no error, expected one of a store without a block")
	}
	if n := (Result{}).IOPS(); n != 0 {
		t.Errorf("found %d IOPS of nothing, expected 0", n)
	}
}

func memory(t *testing.T, size int64, async bool) backstore.Store {
	t.Helper()
	s, err := memstore.New(memstore.Config{Size: size, Async: async})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// watched looks at what is asked of a store.
type watched struct {
	backstore.Store
	reads, running, most int64
	wrong                int // ops that are no read of a whole block of the store
	offsets              map[int64]bool
	closed               bool
}

// Lane implements backstore.Store.
func (w *watched) Lane(l *evloop.Loop) (backstore.Lane, error) {
	lane, err := w.Store.Lane(l)
	return &watchedLane{lane, w}, err
}

type watchedLane struct {
	inner backstore.Lane
	seen  *watched
}

// TryNow implements backstore.Lane.
func (l *watchedLane) TryNow(op *backstore.Op) bool {
	if !l.inner.TryNow(op) {
		return false
	}
	l.began(op)
	l.seen.running--
	return true
}

// Submit implements backstore.Lane.
func (l *watchedLane) Submit(op *backstore.Op) bool {
	l.began(op)
	done := op.Done
	op.Done = func(op *backstore.Op) {
		op.Done = done
		l.seen.running--
		done(op)
	}
	if !l.inner.Submit(op) {
		return false
	}
	op.Done = done
	l.seen.running--
	return true
}

func (l *watchedLane) began(op *backstore.Op) {
	w := l.seen
	w.reads++
	w.running++
	w.most = max(w.most, w.running)
	w.offsets[op.Off] = true
	if op.Kind != backstore.Read || len(op.Data) != BlockSize || op.Off%BlockSize != 0 || op.Off < 0 || op.Off+BlockSize > w.Info().Size {
		w.wrong++
	}
}

// Close implements backstore.Lane.
func (l *watchedLane) Close() {
	l.seen.closed = l.seen.running == 0
	l.inner.Close()
}
