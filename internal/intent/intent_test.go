package intent

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
)

var errPower = errors.New("the power is gone")

// machine has power for a number of writes. Of the one after that any sectors
// may have reached the medium.
type machine struct {
	rng   *rand.Rand
	steps int // until the power goes; negative: it does not
	off   bool
}

// medium is a file on a machine.
type medium struct {
	*machine
	sectors map[int64][sector]byte
	refuse  error // nothing is written any more
}

func (m *medium) WriteStable(off int64, parts ...[]byte) error {
	if m.off {
		return errPower
	}
	if m.refuse != nil {
		return m.refuse
	}
	m.off = m.steps == 0
	m.steps--
	data := slices.Concat(parts...)
	for len(data) > 0 {
		if !m.off || m.rng.IntN(2) == 0 {
			s := m.sectors[off/sector]
			copy(s[:], data[:min(sector, len(data))])
			m.sectors[off/sector] = s
		}
		off, data = off+sector, data[min(sector, len(data)):]
	}
	if m.off {
		return errPower
	}
	return nil
}

func (m *medium) ReadAt(b []byte, off int64) error {
	if m.off {
		return errPower
	}
	for len(b) > 0 {
		s := m.sectors[off/sector]
		n := copy(b, s[:])
		off, b = off+sector, b[n:]
	}
	return nil
}

func (m *medium) Reserve(int64, int64) error { return nil }

func (m *medium) Settle(int64, []byte) error { return nil }

func (m *medium) Cut() error {
	if m.off || m.refuse != nil {
		return errors.Join(errPower, m.refuse)
	}
	clear(m.sectors)
	return nil
}

const targetSectors = 64

// stamped returns n sectors that say who wrote them.
func stamped(id uint64, n int) []byte {
	b := make([]byte, n*sector)
	for at := 0; at < len(b); at += 8 {
		binary.LittleEndian.PutUint64(b[at:], id)
	}
	return b
}

// contents returns who wrote each sector of the target.
func (m *medium) contents(t *testing.T) (ids []uint64) {
	t.Helper()
	for i := range int64(targetSectors) {
		s := m.sectors[i]
		id := binary.LittleEndian.Uint64(s[:])
		if s != [sector]byte(stamped(id, 1)) {
			t.Fatalf("sector %d is torn", i)
		}
		ids = append(ids, id)
	}
	return ids
}

// TestPowerCuts: after a power cut at any point, and others while it is being
// repaired, an atomic write is there wholly or not at all, what was acknowledged
// is there, and nothing is there again that was overwritten.
func TestPowerCuts(t *testing.T) {
	for seed := range uint64(400) {
		power := &machine{rng: rand.New(rand.NewPCG(seed, 7)), steps: -1}
		target, file := &medium{machine: power, sectors: map[int64][sector]byte{}}, &medium{machine: power, sectors: map[int64][sector]byte{}}
		model := make([]uint64, targetSectors)
		id := uint64(0)
		for range 4 {
			power.steps = power.rng.IntN(30)
			var log *Log
			var err error
			for log == nil {
				if log, _, err = Open(file, target, [2]uint64{seed}, targetSectors*sector, Complete); err != nil {
					power.off, power.steps = false, power.rng.IntN(30)
				}
			}
			if got := target.contents(t); !slices.Equal(got, model) {
				t.Fatalf("seed %d: found\n%v, expected\n%v", seed, got, model)
			}
			for err == nil {
				n := 1 + power.rng.IntN(8)
				at := power.rng.IntN(targetSectors - n)
				id++
				next := slices.Clone(model)
				for i := range n {
					next[at+i] = id
				}
				plain := power.rng.IntN(3) == 0
				if plain {
					err = target.WriteStable(int64(at*sector), stamped(id, n))
				} else {
					err = log.Write(stamped(id, n), int64(at*sector))
				}
				if err == nil {
					model = next
					continue
				}
				model = outcome(t, seed, file, target, plain, model, next)
			}
			power.off, power.steps = false, -1
		}
	}
}

// outcome repairs copies of the media after a power cut, and returns what they
// hold: the model or next.
func outcome(t *testing.T, seed uint64, file, target *medium, plain bool, model, next []uint64) []uint64 {
	t.Helper()
	on := &machine{rng: rand.New(rand.NewPCG(seed, 8)), steps: -1}
	f, v := &medium{machine: on, sectors: map[int64][sector]byte{}}, &medium{machine: on, sectors: map[int64][sector]byte{}}
	for k, s := range file.sectors {
		f.sectors[k] = s
	}
	for k, s := range target.sectors {
		v.sectors[k] = s
	}
	if _, _, err := Open(f, v, [2]uint64{seed}, targetSectors*sector, Complete); err != nil {
		t.Fatal(err)
	}
	got := v.contents(t)
	if !plain && !slices.Equal(got, model) && !slices.Equal(got, next) {
		t.Fatalf("seed %d: found\n%v, expected\n%v or\n%v", seed, got, model, next)
	}
	for i := range got {
		if got[i] != model[i] && got[i] != next[i] {
			t.Fatalf("seed %d: sector %d: found %d, expected %d or %d", seed, i, got[i], model[i], next[i])
		}
	}
	return got
}

func on() (file, target *medium) {
	m := &machine{rng: rand.New(rand.NewPCG(1, 1)), steps: -1}
	return &medium{machine: m, sectors: map[int64][sector]byte{}}, &medium{machine: m, sectors: map[int64][sector]byte{}}
}

// interrupted leaves a full slot for n sectors at off.
func interrupted(t *testing.T, file *medium, medium [2]uint64, n int, off int64) {
	t.Helper()
	log, _, err := Open(file, gone{file}, medium, 1<<40, Complete)
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Write(stamped(9, n), off); !errors.Is(err, errPower) {
		t.Fatalf("the write: %v", err)
	}
	file.refuse = nil
}

// gone is a target that takes the log along when it goes.
type gone struct{ file *medium }

func (gone) Reserve(int64, int64) error { return nil }

func (gone) Settle(int64, []byte) error { return nil }

func (gone) ReadAt(b []byte, _ int64) error {
	clear(b)
	return nil
}

func (g gone) WriteStable(int64, ...[]byte) error {
	g.file.refuse = errPower
	return errPower
}

// TestInterrupted: what becomes of a write that was interrupted goes by what the target
// has there. A refusal leaves all as it is.
func TestInterrupted(t *testing.T) {
	own, other := [2]uint64{1, 2}, [2]uint64{1, 3}
	begun := func(m *medium) { m.sectors[8] = [sector]byte(stamped(9, 1)) }
	all := func(m *medium) { begun(m); m.sectors[9] = m.sectors[8] }
	changed := func(m *medium) { m.sectors[9] = [sector]byte(stamped(7, 1)) }
	nothing := func(*medium) {}
	for name, test := range map[string]struct {
		medium [2]uint64
		off    int64
		there  func(*medium)
		mode   Mode
		want   Outcome
		pends  int
	}{
		"not begun":         {own, 8 * sector, nothing, Complete, Outcome{Unbegun: 1}, 0},
		"half":              {own, 8 * sector, begun, Complete, Outcome{Completed: 1}, 1},
		"all":               {own, 8 * sector, all, Complete, Outcome{Completed: 1}, 0},
		"changed":           {own, 8 * sector, changed, Complete, Outcome{}, 1},
		"changed, moved":    {other, 8 * sector, changed, Move, Outcome{}, 1},
		"changed, given up": {own, 8 * sector, changed, Forget, Outcome{Forgotten: 1}, 1},
		"other":             {other, 8 * sector, begun, Complete, Outcome{}, 1},
		"other, moved":      {other, 8 * sector, begun, Move, Outcome{Completed: 1}, 1},
		"other, given up":   {other, 8 * sector, nothing, Forget, Outcome{Forgotten: 1}, 0},
		"behind the end":    {own, (targetSectors - 1) * sector, nothing, Complete, Outcome{}, 0},
	} {
		file, target := on()
		interrupted(t, file, test.medium, 2, test.off)
		test.there(target)
		before := maps.Clone(target.sectors)
		if n, err := Pending(file, target); err != nil || n != test.pends {
			t.Errorf("%s: %d pending, %v, expected %d", name, n, err, test.pends)
		}
		if n, err := Pending(file, nil); err != nil || n != 1 {
			t.Errorf("%s: %d pending, %v, expected that it counts", name, n, err)
		}
		for range 2 {
			_, o, err := Open(file, target, own, targetSectors*sector, test.mode)
			if o != test.want || errors.Is(err, ErrForeign) != (o == Outcome{}) {
				t.Errorf("%s: found %+v, %v", name, o, err)
			}
			if err == nil {
				break
			}
		}
		if test.want.Completed == 0 && !maps.Equal(before, target.sectors) {
			t.Errorf("%s: the target was changed", name)
		}
		if test.want.Completed > 0 && target.contents(t)[9] != 9 {
			t.Errorf("%s: it was not completed", name)
		}
		if n, err := Pending(file, nil); err != nil || (n == 0) != (test.want != Outcome{}) {
			t.Errorf("%s: %d pending, %v, afterwards", name, n, err)
		}
	}
}

// TestFirstVersion: a slot without sums is completed.
func TestFirstVersion(t *testing.T) {
	file, target := on()
	data, h, le := stamped(9, 2), make([]byte, pageSize), binary.LittleEndian
	copy(h, firstMagic)
	le.PutUint64(h[8:], 8*sector)
	le.PutUint64(h[16:], uint64(len(data)))
	le.PutUint64(h[24:], 1)
	le.PutUint32(h[40:], crc32.Checksum(data, castagnoli))
	le.PutUint32(h[44:], crc32.Checksum(h[:44], castagnoli))
	if err := file.WriteStable(slotSize, h, data); err != nil {
		t.Fatal(err)
	}
	if n, err := Pending(file, target); n != 1 || err != nil {
		t.Errorf("%d pending, %v", n, err)
	}
	_, o, err := Open(file, target, [2]uint64{1}, targetSectors*sector, Complete)
	if err != nil || o.Completed != 1 || target.contents(t)[9] != 9 {
		t.Errorf("found %+v, %v", o, err)
	}
}

// TestTornSlot: a record whose data have not all arrived is forgotten, or data like
// those that come there for another write would make it whole.
func TestTornSlot(t *testing.T) {
	file, target := on()
	medium := [2]uint64{1, 2}
	interrupted(t, file, medium, 2, 8*sector)
	last := int64(pageSize/sector + 1)
	torn := file.sectors[last]
	delete(file.sectors, last)
	for range 2 {
		if _, o, err := Open(file, target, medium, targetSectors*sector, Complete); err != nil || o != (Outcome{}) {
			t.Errorf("%+v, %v, expected that nothing was there", o, err)
		}
		file.sectors[last] = torn // of a write of the same data elsewhere, whose header has not arrived
		file.sectors[last-1] = torn
	}
	if target.contents(t)[8] != 0 {
		t.Error("a write that never was has been redone")
	}
}

// TestLogThatFails: nothing is written when the log cannot be, and nothing more
// when it cannot be emptied.
func TestLogThatFails(t *testing.T) {
	file, target := on()
	log, _, err := Open(file, target, [2]uint64{}, targetSectors*sector, Complete)
	if err != nil {
		t.Fatal(err)
	}
	file.refuse = errors.New("full")
	if err := log.Write(stamped(1, 2), 0); !errors.Is(err, file.refuse) {
		t.Errorf("found %v", err)
	}
	if len(target.sectors) != 0 {
		t.Error("the target was written without a record")
	}
	file.refuse = nil
	if err := log.Write(stamped(1, 2), 0); err == nil {
		t.Error("written with a log that could not be emptied")
	}
}

// TestWritesAtOnce: there are more writers than slots.
func TestWritesAtOnce(t *testing.T) {
	file, target := on()
	var mu sync.Mutex
	log, _, err := Open(&locked{file, &mu}, &locked{target, &mu}, [2]uint64{}, 1<<40, Complete)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range int64(3 * slots) {
		wg.Go(func() {
			if err := log.Write(stamped(uint64(i+1), 1), i*sector); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Go(func() {
		if err := log.Wipe(); err != nil {
			t.Error(err)
		}
	})
	wg.Wait()
	for i, id := range target.contents(t)[:3*slots] {
		if id != uint64(i+1) {
			t.Errorf("sector %d: found %d", i, id)
		}
	}
	if err := log.Wipe(); err != nil {
		t.Fatal(err)
	}
	for k, s := range file.sectors {
		if s != [sector]byte{} {
			t.Fatalf("sector %d of the log has something", k)
		}
	}
}

// locked is a medium for several goroutines. Media on one supply of power share mu.
type locked struct {
	*medium
	mu *sync.Mutex
}

func (l *locked) WriteStable(off int64, parts ...[]byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.medium.WriteStable(off, parts...)
}

func (l *locked) ReadAt(b []byte, off int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.medium.ReadAt(b, off)
}

// buffered is a target with writes that were acknowledged and are not on the medium.
type buffered struct {
	*medium
	unstable map[int64][sector]byte
}

func (b *buffered) ReadAt(data []byte, off int64) error {
	if err := b.medium.ReadAt(data, off); err != nil {
		return err
	}
	for i := range int64(len(data) / sector) {
		if s, is := b.unstable[off/sector+i]; is {
			copy(data[i*sector:], s[:])
		}
	}
	return nil
}

func (b *buffered) Settle(off int64, before []byte) error { return b.WriteStable(off, before) }

// TestUnstableBefore: what an atomic write replaces may be lost with the power, too. That
// is not somebody else's doing, for which the target would be refused.
func TestUnstableBefore(t *testing.T) {
	for steps := range 5 {
		for seed := range uint64(20) {
			file, disk := on()
			target := &buffered{disk, map[int64][sector]byte{8: [sector]byte(stamped(5, 1)), 9: [sector]byte(stamped(6, 1))}}
			log, _, err := Open(file, target, [2]uint64{}, targetSectors*sector, Complete)
			if err != nil {
				t.Fatal(err)
			}
			file.rng, file.steps = rand.New(rand.NewPCG(seed, 7)), steps
			_ = log.Write(stamped(9, 2), 8*sector)
			file.off, file.steps = false, -1
			if _, _, err := Open(file, disk, [2]uint64{}, targetSectors*sector, Complete); err != nil {
				t.Fatalf("power for %d writes, seed %d: %v", steps, seed, err)
			}
			if got := disk.contents(t)[8:10]; (got[0] == 9) != (got[1] == 9) {
				t.Fatalf("power for %d writes, seed %d: found %v", steps, seed, got)
			}
		}
	}
}
