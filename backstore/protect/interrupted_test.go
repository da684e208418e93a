package protect

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/errstore"
	"lunar/internal/eventually"
)

const (
	historySize   = 3 << 20 // three regions
	historyBlock  = 512
	historyBlocks = historySize / historyBlock
)

// history is a protected volume and what the medium may have of it: of each block, and
// apart from that of each tuple, what was stable when both stores were flushed last, and
// all that has been written since.
type history struct {
	*testing.T
	rng    *rand.Rand
	dir    string
	kind   Type
	faulty *errstore.Store
	store  *Store
	client *backstoretest.Client
	data   [historyBlocks][][]byte
	tuples [historyBlocks][][]byte // as they lie in the sidecar file
}

func newHistory(t *testing.T, seed uint64) *history {
	h := &history{T: t, rng: rand.New(rand.NewPCG(seed, 0)), kind: Type(1 + seed%3)}
	h.dir, h.faulty, h.store = faultyStoreOf(t, h.kind, historySize)
	h.client = closed(t, h.store)
	for i := range historyBlocks {
		h.data[i], h.tuples[i] = [][]byte{make([]byte, historyBlock)}, [][]byte{make([]byte, TupleSize)}
	}
	return h
}

// change draws a write, or zeroes, of some blocks at either side of a border of regions.
func (h *history) change() *backstore.Op {
	first := (1+h.rng.IntN(2))<<20/historyBlock - 24 + h.rng.IntN(32)
	n := 1 + h.rng.IntN(16)
	op := &backstore.Op{Kind: backstore.Write, Off: int64(first) * historyBlock, Data: backstoretest.Pattern(n*historyBlock, h.rng.Uint64())}
	if h.rng.IntN(4) == 0 {
		op.Kind, op.Data, op.Len = backstore.WriteZeroes, nil, int64(n*historyBlock)
	}
	return op
}

// begun notes that the medium may have what the first n bytes of a change write.
func (h *history) begun(op *backstore.Op, n int64) {
	for off := int64(0); off < n; off += historyBlock {
		i := (op.Off + off) / historyBlock
		data, tuple := make([]byte, historyBlock), make([]byte, TupleSize)
		if op.Kind == backstore.Write {
			copy(data, op.Data[off:])
			Generate(h.kind, historyBlock, data, tuple, uint32(i))
			invert(tuple)
		}
		h.data[i], h.tuples[i] = append(h.data[i], data), append(h.tuples[i], tuple)
	}
}

// flushed notes that what was written last is stable.
func (h *history) flushed() {
	for i := range historyBlocks {
		h.data[i], h.tuples[i] = h.data[i][len(h.data[i])-1:], h.tuples[i][len(h.tuples[i])-1:]
	}
}

// step does one thing, during or after which the server may stop.
func (h *history) step() {
	cleans := h.rng.IntN(3) == 0
	h.store.regions.flushed.Store(math.MaxInt64 / 2) // no region is cleaned
	if cleans {
		h.store.regions.flushed.Store(-1 << 62)
	}
	switch h.rng.IntN(6) {
	case 0:
		h.client.Must(h, backstore.Op{Kind: backstore.Flush})
		h.flushed()
		return
	case 1:
		h.refused()
	default:
		h.interrupted()
	}
	if h.store.regions.flushed.Load() != -1<<62 && cleans {
		h.flushed()
	}
}

// refused is a change of which the store takes a part.
func (h *history) refused() {
	op := h.change()
	done := int64(0)
	if op.Kind == backstore.Write {
		done = int64(h.rng.IntN(int(op.Length()/historyBlock))) * historyBlock
	}
	h.faulty.SetRules(errstore.Rule{Kinds: []backstore.Kind{op.Kind}, Err: backstore.ErrNoSpace, Done: done, Times: 1})
	if err := h.client.Run(op); !errors.Is(err, backstore.ErrNoSpace) {
		h.Fatalf("found %v, expected that there is no space", err)
	}
	h.faulty.SetRules()
	h.begun(op, done)
}

// interrupted is a change during which the server may stop.
func (h *history) interrupted() {
	op := h.change()
	h.faulty.SetRules(errstore.Rule{Kinds: []backstore.Kind{op.Kind}, Hold: true, Times: 1})
	ended := h.client.Go(op)
	eventually.Finds(h, "changes that are held", 1, h.faulty.Held)
	h.faulty.SetRules()
	if h.rng.IntN(2) == 0 {
		h.meanwhile(op)
	}
	h.begun(op, op.Length())
	h.stop("during a change")
	h.faulty.Release(-1)
	if <-ended; op.Err != nil {
		h.Fatal(op.Err)
	}
}

// meanwhile has a flush clean regions while a change is under way, and the log written
// anew for another one.
func (h *history) meanwhile(change *backstore.Op) {
	forced := h.store.regions.flushed.Load()
	h.store.regions.flushed.Store(-1 << 62)
	h.client.Must(h, backstore.Op{Kind: backstore.Flush})
	h.flushed()
	h.store.regions.flushed.Store(math.MaxInt64 / 2)
	other := &backstore.Op{Kind: backstore.Write, Data: backstoretest.Pattern(historyBlock, h.rng.Uint64())}
	if change.Off < 1<<20 {
		other.Off = historySize - historyBlock
	}
	h.client.Must(h, *other)
	h.begun(other, historyBlock)
	h.store.regions.flushed.Store(forced)
}

// reads expects of each block the data that were written last, and their tuple.
func (h *history) reads() {
	sidecar, err := os.ReadFile(filepath.Join(h.dir, "tuples"))
	if err != nil {
		h.Fatal(err)
	}
	got := h.client.Read(h, 0, historySize)
	for i := range historyBlocks {
		data, tuple := h.data[i][len(h.data[i])-1], h.tuples[i][len(h.tuples[i])-1]
		if !bytes.Equal(got[i*historyBlock:][:historyBlock], data) {
			h.Fatalf("block %d: other data than were written", i)
		}
		if stored := sidecar[tupleOffset+i*TupleSize:][:TupleSize]; !bytes.Equal(stored, tuple) {
			h.Fatalf("block %d: found tuple %x, expected %x", i, stored, tuple)
		}
	}
}

// stop looks at what a start finds if the server and the machine stop now: of each
// block the medium has the data and the tuple of one time or another.
func (h *history) stop(when string) {
	dir := h.TempDir()
	sidecar, err := os.ReadFile(filepath.Join(h.dir, "tuples"))
	if err != nil {
		h.Fatal(err)
	}
	var image []byte
	misfits, whole := uint64(0), []int(nil)
	for i := range historyBlocks {
		data, tuple := h.data[i][h.rng.IntN(len(h.data[i]))], h.tuples[i][h.rng.IntN(len(h.tuples[i]))]
		image = append(image, data...)
		copy(sidecar[tupleOffset+i*TupleSize:], tuple)
		t := Tuple(bytes.Clone(tuple))
		invert(t)
		if !t.Escaped(h.kind) {
			whole = append(whole, i)
			if t.Guard() != Guard(data) {
				misfits++
			}
		}
	}
	path := filepath.Join(dir, "data")
	if err := errors.Join(os.WriteFile(path, image, 0o600), os.WriteFile(filepath.Join(dir, "tuples"), sidecar, 0o600)); err != nil {
		h.Fatal(err)
	}
	for start, anew := range []uint64{misfits, 0} {
		h.Run(fmt.Sprintf("%s, start %d", when, start), func(t *testing.T) {
			s := opened(t, dir, h.kind, historySize)
			c := closed(t, s)
			if s.Anew() != anew {
				t.Errorf("the tuples of %d blocks were made anew, expected %d", s.Anew(), anew)
			}
			if got := c.Read(t, 0, historySize); !bytes.Equal(got, image) {
				t.Error("other data than the medium has")
			}
			if start == 0 || len(whole) == 0 {
				return
			}
			i := whole[h.rng.IntN(len(whole))]
			damage(t, path, int64(i*historyBlock+h.rng.IntN(historyBlock)))
			var found *CheckError
			err := c.Do(backstore.Op{Kind: backstore.Read, Off: int64(i) * historyBlock, Data: backstoretest.Buffer(historyBlock)})
			if !errors.As(err, &found) || *found != (CheckError{uint64(i), GuardField}) {
				t.Errorf("found %v, expected damage of block %d", err, i)
			}
		})
	}
}

// TestInterruptedChanges: whenever the server and the machine stop, every block reads
// as the medium has it, the tuples that do not fit are made anew and no others, and
// damage that comes later is found.
func TestInterruptedChanges(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			h := newHistory(t, seed)
			for range 8 {
				h.step()
				h.reads()
				h.stop("after a step")
			}
		})
	}
}
