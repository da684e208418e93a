package segment

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"
)

// The tests here kill a process that uses a segment. The process is this test
// binary; it is told by the environment that it is the victim.
const victimOf = "LUNAR_SEGMENT_VICTIM"

func TestMain(m *testing.M) {
	if path := os.Getenv(victimOf); path != "" {
		fmt.Fprintln(os.Stderr, victim(path)) // it only returns if it fails
		os.Exit(1)
	}
	os.Exit(m.Run())
}

const (
	writers   = 2
	killSlots = 8
	killParts = 16 // sub-blocks in a block, of one word each
)

func killOptions() Options {
	return Options{Identity: "victim", Build: "v1", Wait: time.Minute, Geometry: Geometry{
		Slots: killSlots, BlockSize: killParts * 8, SubBlock: 8,
		Areas: []Area{{"log", writers * 64, -1, false}, {"data", killSlots * killParts * 8, -1, false}},
	}}
}

// change is what writer w does as its n-th step: to one of its own slots, so
// that the slot can get another block, which the step decides.
type change struct {
	slot   uint32
	block  uint64
	assign bool // after everything of the slot was cleaned
	mask   uint64
	dirty  bool
}

func changeOf(w, n int, generation uint64) change {
	r := rand.New(rand.NewPCG(uint64(w)<<32|generation, uint64(n)))
	c := change{slot: uint32(w + writers*r.IntN(killSlots/writers)), mask: r.Uint64N(1 << killParts), dirty: r.IntN(3) > 0}
	c.assign = r.IntN(8) == 0
	c.block = uint64(w)<<40 | uint64(n)
	return c
}

// counter is the word in which writer w says how many steps it has ended.
func counter(s *Segment, w int) *uint64 {
	return (*uint64)(unsafe.Pointer(&s.Area("log")[w*64]))
}

// do performs a step as a cache would: data, then mark; or mark as clean.
func (c change) do(s *Segment, n int) error {
	if c.assign {
		s.MarkClean(c.slot, 1<<killParts-1)
		return s.Assign(c.slot, 1, c.block)
	}
	if !c.dirty {
		s.MarkClean(c.slot, c.mask)
		return nil
	}
	data := wordsOf(s.Area("data"))
	for part := range killParts {
		if c.mask>>part&1 == 1 {
			data.store(int(c.slot)*killParts+part, uint64(n))
		}
	}
	s.MarkDirty(c.slot, c.mask)
	return nil
}

// victim works until it is killed.
func victim(path string) error {
	s, err := Attach(path, killOptions())
	if err != nil {
		return err
	}
	for slot := range uint32(killSlots) {
		s.MarkClean(slot, 1<<killParts-1)
		if err := s.Assign(slot, 1, uint64(slot)); err != nil {
			return err
		}
	}
	failed := make(chan error, writers)
	for w := range writers {
		atomic.StoreUint64(counter(s, w), 0)
		go func() {
			for n := 1; ; n++ {
				if err := changeOf(w, n, s.Generation).do(s, n); err != nil {
					failed <- err
					return
				}
				atomic.StoreUint64(counter(s, w), uint64(n))
			}
		}()
	}
	fmt.Println("ready")
	return <-failed
}

// expected is what the journal should say of a slot.
type expected struct {
	block uint64
	mask  uint64
	data  [killParts]uint64
}

func (c change) apply(e *[killSlots]expected, n int) {
	x := &e[c.slot]
	switch {
	case c.assign:
		x.block, x.mask = c.block, 0
	case c.dirty:
		x.mask |= c.mask
		for part := range killParts {
			if c.mask>>part&1 == 1 {
				x.data[part] = uint64(n)
			}
		}
	default:
		x.mask &^= c.mask
	}
}

// A process is killed again and again; each time the next one finds every mark
// whose step had ended, with its data.
func TestKill(t *testing.T) {
	path := filepath.Join(sharedDir(t), "cache")
	rounds := 25
	if testing.Short() {
		rounds = 3
	}
	steps := uint64(0)
	for round := range rounds {
		killOnce(t, path, time.Duration(rand.IntN(20000))*time.Microsecond)
		s := attach(t, path, killOptions())
		if s.Outcome != Crashed || s.Generation != uint64(2*round+2) {
			t.Fatalf("round %d: %v, generation %d", round, s.Outcome, s.Generation)
		}
		for w := range writers {
			steps += checkWriter(t, s, w, s.Generation-1)
		}
		must(t, s.Detach())
	}
	if steps == 0 {
		t.Error("no step ended before any kill")
	}
}

// killOnce starts a process, lets it work for a while and kills it.
func killOnce(t *testing.T, path string, after time.Duration) {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), victimOf+"="+path)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	must(t, err)
	must(t, child.Start())
	if _, err := out.Read(make([]byte, 16)); err != nil {
		t.Errorf("the victim did not get ready: %v", err)
	}
	time.Sleep(after) // any moment will do
	must(t, child.Process.Kill())
	if err := child.Wait(); err == nil {
		t.Error("the victim ended by itself")
	}
}

// checkWriter compares with the model after the steps that had ended, and after
// one more, of which any part may have happened.
func checkWriter(t *testing.T, s *Segment, w int, generation uint64) uint64 {
	t.Helper()
	var before [killSlots]expected
	for slot := range before {
		before[slot].block = uint64(slot)
	}
	ended := atomic.LoadUint64(counter(s, w))
	for n := 1; n <= int(ended); n++ {
		changeOf(w, n, generation).apply(&before, n)
	}
	after := before
	next := changeOf(w, int(ended)+1, generation)
	next.apply(&after, int(ended)+1)
	var found [killSlots]Range
	for _, r := range s.Dirty {
		found[r.Slot] = r
	}
	for slot := w; slot < killSlots; slot += writers {
		checkSlot(t, s, found[slot], before[slot], after[slot], slot)
	}
	return ended
}

func checkSlot(t *testing.T, s *Segment, r Range, before, after expected, slot int) {
	t.Helper()
	if lost, strange := before.mask&after.mask&^r.Mask, r.Mask&^(before.mask|after.mask); lost|strange != 0 {
		t.Errorf("slot %d: %#x is dirty, lost %#x, invented %#x", slot, r.Mask, lost, strange)
	}
	if r.Mask != 0 && r.Block != before.block {
		t.Errorf("slot %d: block %#x is dirty, expected %#x", slot, r.Block, before.block)
	}
	data := s.Area("data")[slot*killParts*8:]
	for part := range killParts {
		if got := binary.NativeEndian.Uint64(data[part*8:]); r.Mask>>part&1 == 1 && got != before.data[part] && got != after.data[part] {
			t.Errorf("slot %d: part %d has the data of step %d, expected %d or %d", slot, part, got, before.data[part], after.data[part])
		}
	}
}
