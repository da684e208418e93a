package windows

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/errstore"
	"lunar/backstore/memstore"
	"lunar/internal/eventually"
)

// TestRegionsOfAnotherSize: whatever a bit stood for, a bit stands for after the volume has
// another size.
func TestRegionsOfAnotherSize(t *testing.T) {
	const gib = 1 << 30
	for _, tc := range []struct{ from, to int64 }{{8 << 20, 9<<20 + 512}, {31 * gib, 33 * gib}, {100 * gib, 20 * gib}, {40 * gib, 1 << 20}, {gib, 4096 * gib}} {
		for _, off := range []int64{0, 1 << 20, tc.from / 3, tc.from - 1} {
			var r regions
			r.add(off >> regionShift(tc.from))
			r.resize(tc.from, tc.to)
			shift := regionShift(tc.to)
			for at := range min((tc.to-1)>>shift+1, regionsMost) {
				first, last := at<<shift, (at+1)<<shift-1
				was := off >> regionShift(tc.from) << regionShift(tc.from)
				want := first < was+1<<regionShift(tc.from) && was <= last || tc.to > tc.from && last >= tc.from
				if r.has(at) != want {
					t.Fatalf("%d bytes at %d become %d: region %d is %t, expected %t", tc.from, off, tc.to, at, r.has(at), want)
				}
			}
			if last := (tc.to-1)>>shift + 1; last < regionsMost && r.has(last) {
				t.Errorf("a region behind the end of %d bytes", tc.to)
			}
		}
	}
}

// TestResizeOfLargerMembers: what members have behind the end of the volume is no part of
// it when it grows.
func TestResizeOfLargerMembers(t *testing.T) {
	a, b := mem(t, 2*crashSize), mem(t, 3*crashSize)
	for i, s := range []backstore.Store{a, b} {
		k := backstoretest.NewClient(t, s, backstoretest.NewLoop(t, false))
		k.Write(t, crashSize, backstoretest.Pattern(4096, uint64(i)))
	}
	c := mirrorOf(a, b, mem(t, MapSize))
	c.Size = crashSize
	m := openMirror(t, c)
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	whole(t, m)
	if err := m.Resize(2 * crashSize); err != nil {
		t.Fatal(err)
	}
	whole(t, m)
	k := backstoretest.NewClient(t, m, backstoretest.NewLoop(t, false))
	if got := k.Read(t, crashSize, 4096); !bytes.Equal(got, make([]byte, 4096)) {
		t.Error("what is new does not read as zeroes")
	}
}

// TestGrowthBesideInitiators: nobody waits while what members have behind the end is zeroed;
// if that fails the volume stays as large as it was.
func TestGrowthBesideInitiators(t *testing.T) {
	medium := mem(t, 2*crashSize)
	backstoretest.NewClient(t, medium, backstoretest.NewLoop(t, false)).Write(t, crashSize, backstoretest.Pattern(4096, 2))
	larger := errstore.Wrap(medium)
	c := mirrorOf(mem(t, crashSize), larger, mem(t, MapSize))
	c.Size = crashSize
	m := openMirror(t, c)
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	whole(t, m)
	zeroes := errstore.Rule{Kinds: []backstore.Kind{backstore.WriteZeroes}, Off: crashSize}
	zeroes.Hold, zeroes.Err = true, errBroken
	larger.SetRules(zeroes)
	ended := make(chan error, 1)
	go func() { ended <- m.Resize(2 * crashSize) }()
	eventually.Holds(t, "zeroes are on their way", func() bool { return larger.Held() > 0 })
	k := backstoretest.NewClient(t, m, backstoretest.NewLoop(t, false))
	k.Write(t, 0, backstoretest.Pattern(4096, 1))
	if err := m.exchange(); err != nil {
		t.Error(err)
	}
	if got := k.Read(t, 0, 4096); !bytes.Equal(got, backstoretest.Pattern(4096, 1)) {
		t.Error("what was written meanwhile is not read")
	}
	larger.SetRules()
	larger.Release(-1)
	if err := <-ended; !errors.Is(err, errBroken) || m.Info().Size != crashSize {
		t.Errorf("found %v and %d bytes, expected that it stays as large as it was", err, m.Info().Size)
	}
	if err := m.Resize(2 * crashSize); err != nil {
		t.Error(err)
	}
	whole(t, m)
}

// TestGrowthWhileStopped: what members had behind the end of the volume is no part of it when
// it grows while nobody serves it, whatever size they have; a volume without a configured size
// has what they have.
func TestGrowthWhileStopped(t *testing.T) {
	for _, configured := range []int64{2 * crashSize, 0} {
		a, b, chart := mem(t, 2*crashSize), mem(t, crashSize+1<<20), mem(t, MapSize)
		c := mirrorOf(a, b, chart)
		c.Size = crashSize
		if err := openMirror(t, c).Close(); err != nil {
			t.Fatal(err)
		}
		old := backstoretest.Pattern(4096, 1)
		for _, s := range []backstore.Store{a, b} {
			backstoretest.NewClient(t, s, backstoretest.NewLoop(t, false)).Write(t, crashSize, old)
		}
		c.Size = configured
		m := openMirror(t, c)
		t.Cleanup(func() {
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		})
		whole(t, m)
		want := old
		if configured > 0 {
			want = make([]byte, len(old))
		}
		k := backstoretest.NewClient(t, m, backstoretest.NewLoop(t, false))
		if got := k.Read(t, crashSize, len(old)); !bytes.Equal(got, want) {
			t.Errorf("size %d: found %x behind the end of before, expected %x", configured, got[:8], want[:8])
		}
	}
}

// TestGrowthOfNobodysMembers: where growth finds other files than the volume's, which is
// refused, nothing of them is zeroed.
func TestGrowthOfNobodysMembers(t *testing.T) {
	chart := mem(t, MapSize)
	c := mirrorOf(disc{mem(t, crashSize), 1}, disc{mem(t, crashSize), 2}, chart)
	if err := openMirror(t, c).Close(); err != nil {
		t.Fatal(err)
	}
	others, data := [2]disc{{mem(t, 2*crashSize), 3}, {mem(t, 2*crashSize), 4}}, backstoretest.Pattern(4096, 1)
	for _, o := range others {
		backstoretest.NewClient(t, o, backstoretest.NewLoop(t, false)).Write(t, crashSize, data)
	}
	c = mirrorOf(others[0], others[1], chart)
	c.Size = 2 * crashSize
	if m, err := OpenMirror(c); err == nil {
		t.Error("it is not refused")
		_ = m.Close()
	}
	for i, o := range others {
		if !bytes.Equal(o.Bytes()[crashSize:][:len(data)], data) {
			t.Errorf("data of file %d are gone", i)
		}
	}
}

// TestRefusedStartChangesNoMember: a start that is refused because of one member, or because
// members are others than the volume's, has not had any of them grow.
func TestRefusedStartChangesNoMember(t *testing.T) {
	for name, change := range map[string]func(c *MirrorConfig, a, b *memstore.Store) error{
		"a member was cut": func(_ *MirrorConfig, _, b *memstore.Store) error { return b.Resize(crashSize / 2) },
		"other members": func(c *MirrorConfig, a, b *memstore.Store) error {
			c.Members[0].Open, c.Members[1].Open = always(disc{a, 3}), always(disc{b, 4})
			return nil
		},
	} {
		a, b := mem(t, crashSize), mem(t, crashSize)
		c := mirrorOf(disc{a, 1}, disc{b, 2}, mem(t, MapSize))
		if err := openMirror(t, c).Close(); err != nil {
			t.Fatal(err)
		}
		if err := change(&c, a, b); err != nil {
			t.Fatal(err)
		}
		was := b.Info().Size
		c.Size = 2 * crashSize
		if m, err := OpenMirror(c); err == nil {
			t.Errorf("%s: it is not refused", name)
			_ = m.Close()
		}
		if a.Info().Size != crashSize || b.Info().Size != was {
			t.Errorf("%s: members have %d and %d bytes, expected %d and %d", name, a.Info().Size, b.Info().Size, int64(crashSize), was)
		}
	}
}

// TestResizeWithoutAMember: a member that was away while the volume grew grows when it is
// back.
func TestResizeWithoutAMember(t *testing.T) {
	p := newPower(1, mem(t, crashSize), mem(t, crashSize), mem(t, MapSize))
	c := mirrorOf(p.stores[0], p.stores[1], p.stores[2])
	c.Window = time.Hour
	m := openMirror(t, c)
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		if !bytes.Equal(p.stores[0].Bytes(), p.stores[1].Bytes()) {
			t.Error("the members differ")
		}
	})
	m.poke()
	whole(t, m)
	m.gate.Lock()
	err := m.drop(m.other(), errBroken)
	m.gate.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Resize(2 * crashSize); err != nil {
		t.Fatal(err)
	}
	k := backstoretest.NewClient(t, m, backstoretest.NewLoop(t, false))
	k.Write(t, 2*crashSize-4096, backstoretest.Pattern(4096, 1))
	if _, err := m.Rejoin(t.Context()); err != nil {
		t.Fatal(err)
	}
	whole(t, m)
}

// fixed is a store that stays as large as it is.
type fixed struct{ backstore.Store }

// TestStartWithASmallerMemberBack: the smaller member of two devices, which was dropped and
// is there again at a start, keeps the size of the volume what it was.
func TestStartWithASmallerMemberBack(t *testing.T) {
	c := mirrorOf(fixed{mem(t, 2*crashSize)}, fixed{mem(t, crashSize)}, mem(t, MapSize))
	c.Window = time.Hour
	m := openMirror(t, c)
	m.poke()
	whole(t, m)
	m.gate.Lock()
	err := m.drop(m.other(), errBroken)
	m.gate.Unlock()
	if err = errors.Join(err, m.Close()); err != nil {
		t.Fatal(err)
	}
	m = openMirror(t, c)
	if found := m.Info().Size; found != crashSize {
		t.Errorf("found %d bytes, expected %d", found, crashSize)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

// TestExcessThatCannotShrink keeps its size, and what is written behind the end that it was
// to have is there after a power cut, whatever the label says.
func TestExcessThatCannotShrink(t *testing.T) {
	slow, medium := mem(t, crashSize), mem(t, ExcessLeast)
	fast := errstore.Wrap(medium)
	c := excessOf(slow, fast)
	c.Slow, c.Large, c.Window = known{fixed{slow}, 1}, 1<<40, time.Hour
	x := openExcess(t, c)
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, rules := range [][]errstore.Rule{nil, {{Kinds: []backstore.Kind{backstore.Write}, Len: page, After: 1, Err: errBroken}}} {
		fast.SetRules(rules...) // a second label cannot be written
		if err := x.Resize(crashSize / 2); err == nil || strings.Contains(err.Error(), "%!") {
			t.Errorf("found %v, expected that the slow device cannot be cut", err)
		}
	}
	fast.SetRules()
	k := backstoretest.NewClient(t, x, backstoretest.NewLoop(t, false))
	data := backstoretest.Pattern(4096, 1)
	k.Must(t, backstore.Op{Kind: backstore.Write, FUA: true, Off: crashSize - 4096, Data: data})
	again := openExcess(t, excessOf(slow.CrashClone(1), medium.CrashClone(1)))
	t.Cleanup(func() {
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	})
	k = backstoretest.NewClient(t, again, backstoretest.NewLoop(t, false))
	if got := k.Read(t, crashSize-4096, 4096); !bytes.Equal(got, data) {
		t.Error("what was acknowledged is gone")
	}
}

// TestMemberThatWasCutWhileAway: what somebody has cut off a member that was away is copied
// to it, though nobody has written there; the leader is not taken back so.
func TestMemberThatWasCutWhileAway(t *testing.T) {
	for _, restart := range []bool{false, true} {
		a, b, chart := mem(t, crashSize), mem(t, crashSize), mem(t, MapSize)
		k := backstoretest.NewClient(t, a, backstoretest.NewLoop(t, false))
		k.Write(t, crashSize-4096, backstoretest.Pattern(4096, 1))
		c := mirrorOf(known{a, 1}, known{b, 2}, chart)
		c.Window, c.Size = time.Hour, crashSize
		m := openMirror(t, c)
		m.poke()
		whole(t, m)
		m.gate.Lock()
		err := m.drop(m.other(), errBroken)
		m.gate.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Resize(crashSize / 2); err != nil {
			t.Fatal(err)
		}
		if restart {
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
			m = openMirror(t, c)
			m.poke()
		} else if _, err := m.Rejoin(t.Context()); err != nil {
			t.Fatal(err)
		}
		whole(t, m)
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		if !bytes.Equal(a.Bytes(), b.Bytes()) {
			t.Errorf("restart %t: the members differ", restart)
		}
	}
}

// TestLeaderThatWasCut: a leader that has lost a part while it could not be read is not
// taken back.
func TestLeaderThatWasCut(t *testing.T) {
	a, b := mem(t, crashSize), mem(t, crashSize)
	k := backstoretest.NewClient(t, a, backstoretest.NewLoop(t, false))
	k.Write(t, 0, backstoretest.Pattern(4096, 1))
	leader := errstore.Wrap(a, errstore.Rule{Kinds: []backstore.Kind{backstore.Read}, Err: errBroken})
	m := openMirror(t, mirrorOf(leader, b, mem(t, MapSize)))
	t.Cleanup(func() { _ = m.Close() })
	eventually.Holds(t, "the failure is told", func() bool { return m.unread.Load() != nil })
	leader.SetRules()
	if err := a.Resize(crashSize / 2); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Rejoin(t.Context()); err == nil {
		t.Error("it was taken back")
	}
	if n := a.Info().Size; n != crashSize/2 {
		t.Errorf("it has %d bytes, expected that it stays as it is", n)
	}
}
