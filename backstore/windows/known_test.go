package windows

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/memstore"
)

// disc is a disk that is known, but whose writes nobody counts.
type disc struct {
	*memstore.Store
	serial uint64
}

// Medium is as that of files and devices.
func (d disc) Medium() [3]uint64 { return [3]uint64{d.serial} }

// TestMembersThatChangedPlaces: disks that have each other's names after a power cut are
// not taken for each other.
func TestMembersThatChangedPlaces(t *testing.T) {
	a, b, page := mem(t, crashSize), mem(t, crashSize), mem(t, MapSize)
	c := mirrorOf(disc{a, 1}, disc{b, 2}, page)
	c.Window = time.Hour
	m := openWhole(t, c)
	k := backstoretest.NewClient(t, m, backstoretest.NewLoop(t, false))
	k.Must(t, backstore.Op{Kind: backstore.Write, FUA: true, Data: backstoretest.Pattern(4096, 1)})
	m.gate.RLock() // the members stay as they are
	defer m.gate.RUnlock()
	wrong := mirrorOf(disc{b.CrashClone(1), 2}, disc{a.CrashClone(1), 1}, page.CrashClone(1))
	if again, err := OpenMirror(wrong); err == nil {
		t.Error("the member without the newest data leads")
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestFirstMemberThatIsEmpty: a new file does not take the data from the other member.
func TestFirstMemberThatIsEmpty(t *testing.T) {
	full := mem(t, crashSize)
	k := backstoretest.NewClient(t, full, backstoretest.NewLoop(t, false))
	data := backstoretest.Pattern(4096, 1)
	k.Write(t, 1<<20, data)
	fresh := mem(t, crashSize)
	m := openMirror(t, mirrorOf(fresh, full, mem(t, MapSize)))
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	whole(t, m)
	if !bytes.Equal(fresh.Bytes(), full.Bytes()) || !bytes.Equal(full.Bytes()[1<<20:][:4096], data) {
		t.Error("the data are gone")
	}
}

// TestNewMirrorNeedsBothMembers: whoever is missing, a mirror that has never been complete
// does not begin with the other alone, and a later start finds it as new as it was.
func TestNewMirrorNeedsBothMembers(t *testing.T) {
	chart := mem(t, MapSize)
	for missing := range 2 {
		c := mirrorOf(mem(t, crashSize), mem(t, crashSize), chart)
		c.Members[missing].Open = never
		m, err := OpenMirror(c)
		if err == nil {
			_ = m.Close()
		}
		if name := c.Members[missing].Name; err == nil || !strings.Contains(err.Error(), "member "+name+": unplugged; a new mirror begins with both") {
			t.Errorf("without member %s: found %v, expected a refusal that names it", name, err)
		}
	}
	c := mirrorOf(mem(t, crashSize), mem(t, crashSize), chart)
	if err := openMirror(t, c).Close(); err != nil {
		t.Fatal(err)
	}
	c.Members[1].Open = never
	if err := openMirror(t, c).Close(); err != nil {
		t.Error(err)
	}
}

// logged is a volume whose writes are in its log, on a slow device of a serial number.
func logged(t *testing.T, serial uint64) (x *Excess, fast *memstore.Store) {
	t.Helper()
	fast = mem(t, ExcessLeast)
	c := excessOf(mem(t, crashSize), fast)
	c.Slow, c.Large, c.Window = known{mem(t, crashSize), serial}, 1<<40, time.Hour
	x = openExcess(t, c)
	k := backstoretest.NewClient(t, x, backstoretest.NewLoop(t, false))
	k.Must(t, backstore.Op{Kind: backstore.Write, FUA: true, Data: backstoretest.Pattern(4096, 1)})
	return x, fast
}

// TestLogWithoutItsNote: what a log has goes to the slow device that it was written for, and
// to no other of its size, though nothing else tells whose it is.
func TestLogWithoutItsNote(t *testing.T) {
	x, fast := logged(t, 1)
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	other := mem(t, crashSize)
	c := excessOf(other, fast.CrashClone(1))
	c.Slow = known{other, 2}
	if again, err := OpenExcess(c); !errors.Is(err, ErrNotIts) {
		t.Errorf("found %v, expected that the log of another device is refused", err)
		if err == nil {
			_ = again.Close()
		}
	}
	own := mem(t, crashSize)
	again := openExcess(t, excessOf(own, fast.CrashClone(1)))
	again.Serve()
	if err := again.Close(); err != nil {
		t.Error(err)
	}
	if !bytes.Equal(own.Bytes()[:4096], backstoretest.Pattern(4096, 1)) {
		t.Error("what was written for this device is not there")
	}
}

// TestLogOfAnEarlierVersion: a label that does not tell the slow device is taken with the
// note of the log, and tells it from then on; without the note only if the log is empty.
func TestLogOfAnEarlierVersion(t *testing.T) {
	x, fast := logged(t, 1)
	id := x.Identity()
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	was := label{identity: id, size: crashSize}
	old := func(s *memstore.Store) *memstore.Store {
		page := make([]byte, page)
		was.encode(page)
		put(t, s, 0, page[:memstore.Sector])
		return s
	}
	if _, err := OpenExcess(excessOf(mem(t, crashSize), old(fast.CrashClone(1)))); !errors.Is(err, ErrNotIts) {
		t.Errorf("found %v, expected that a log that nobody knows is refused", err)
	}
	s := old(fast.CrashClone(1))
	c := excessOf(mem(t, crashSize), s)
	c.Identity = id
	again := openExcess(t, c)
	again.Serve()
	crashed := s.CrashClone(2)
	if err := again.Close(); err != nil {
		t.Error(err)
	}
	for name, s := range map[string]*memstore.Store{"its label is new": crashed, "it is empty": old(s)} {
		x, err := OpenExcess(excessOf(mem(t, crashSize), s))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if err := x.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestEmptyLogOfAnotherSize: a volume that has grown while nobody served it takes its log,
// which has nothing.
func TestEmptyLogOfAnotherSize(t *testing.T) {
	fast := mem(t, ExcessLeast)
	for _, size := range []int64{crashSize, 2 * crashSize, crashSize / 2} {
		if err := openExcess(t, excessOf(mem(t, size), fast)).Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestMembersThatHaveGrown: a mirror without a size is as large as its smaller member, also
// when both have grown while nobody served it.
func TestMembersThatHaveGrown(t *testing.T) {
	a, b, chart := mem(t, crashSize), mem(t, crashSize), mem(t, MapSize)
	m := openMirror(t, mirrorOf(a, b, chart))
	whole(t, m)
	k := backstoretest.NewClient(t, m, backstoretest.NewLoop(t, false))
	k.Write(t, crashSize-4096, backstoretest.Pattern(4096, 1))
	left := [3]*memstore.Store{a.CrashClone(1), b.CrashClone(2), chart.CrashClone(3)}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	k.Must(t, backstore.Op{Kind: backstore.Flush})
	for i, size := range []int64{3 * crashSize, 2 * crashSize} {
		if err := left[i].Resize(size); err != nil {
			t.Fatal(err)
		}
	}
	again := openMirror(t, mirrorOf(left[0], left[1], left[2]))
	defer func() {
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	}()
	if n := again.Info().Size; n != 2*crashSize {
		t.Errorf("%d bytes, expected %d", n, 2*crashSize)
	}
	whole(t, again)
	k = backstoretest.NewClient(t, again, backstoretest.NewLoop(t, false))
	k.Write(t, 2*crashSize-4096, backstoretest.Pattern(4096, 2))
}

// TestMembersThatWereCut: a part of a mirror that is gone is told, with what to do.
func TestMembersThatWereCut(t *testing.T) {
	a, b, chart := mem(t, crashSize), mem(t, crashSize), mem(t, MapSize)
	if err := openMirror(t, mirrorOf(a, b, chart)).Close(); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*memstore.Store{a, b} {
		if err := s.Resize(crashSize / 2); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := OpenMirror(mirrorOf(a, b, chart)); err == nil || !strings.Contains(err.Error(), "only while it is served") {
		t.Errorf("found %v, expected what to do about members that are too small", err)
	}
}

// TestLargerSizeAtAStart: a mirror whose configured size is larger than it was grows, with
// its members, and not if one of them has lost a part.
func TestLargerSizeAtAStart(t *testing.T) {
	a, b, chart := mem(t, crashSize), mem(t, crashSize), mem(t, MapSize)
	if err := openMirror(t, mirrorOf(a, b, chart)).Close(); err != nil {
		t.Fatal(err)
	}
	c := mirrorOf(a.CrashClone(1), mem(t, crashSize/2), chart.CrashClone(1))
	c.Size = 2 * crashSize
	if m, err := OpenMirror(c); err == nil {
		t.Error("a member that has lost a part is used")
		_ = m.Close()
	}
	c = mirrorOf(a, b, chart)
	c.Size = 2 * crashSize
	m := openMirror(t, c)
	whole(t, m)
	k := backstoretest.NewClient(t, m, backstoretest.NewLoop(t, false))
	k.Write(t, c.Size-4096, backstoretest.Pattern(4096, 1))
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		if !bytes.Equal(a.Bytes(), b.Bytes()) || int64(len(a.Bytes())) != c.Size {
			t.Error("the members differ, or are too small")
		}
	})
}
