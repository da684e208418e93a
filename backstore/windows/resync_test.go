package windows

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/errstore"
	"lunar/backstore/memstore"
	"lunar/internal/eventually"
)

// TestLeaderThatCannotBeRead: the other member gets all but what the leader cannot read.
func TestLeaderThatCannotBeRead(t *testing.T) {
	full := mem(t, crashSize)
	k := backstoretest.NewClient(t, full, backstoretest.NewLoop(t, false))
	for off := int64(0); off < crashSize; off += regionLeast { // else there is nothing to be read
		k.Write(t, off, backstoretest.Pattern(4096, 1))
	}
	leader := errstore.Wrap(full, errstore.Rule{Kinds: []backstore.Kind{backstore.Read}, Len: 4096, Err: errBroken})
	m := openMirror(t, mirrorOf(leader, mem(t, crashSize), mem(t, MapSize)))
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	eventually.Finds(t, "regions that a member lacks", 1, func() int { return m.Status().Behind })
}

// TestReadsOfADroppedMember: no read goes to a member once what is held for it is dropped.
func TestReadsOfADroppedMember(t *testing.T) {
	c := mirrorOf(mem(t, crashSize), mem(t, crashSize), mem(t, MapSize))
	c.Window = time.Hour
	m := openWhole(t, c)
	k := backstoretest.NewClient(t, m, backstoretest.NewLoop(t, false))
	k.Write(t, 0, backstoretest.Pattern(4096, 1))
	m.stale.Lock() // which stops it half way
	m.fail(errBroken)
	eventually.Finds(t, "extents that are held", 0, func() int {
		m.held.RLock()
		defer m.held.RUnlock()
		return m.held.count
	})
	reader := m.direct(0, 4096)
	m.stale.Unlock()
	if reader != m.leader {
		t.Errorf("member %d serves a read that only member %d can", reader, m.leader)
	}
	eventually.Finds(t, "the member that is missing", "b", func() string { return m.Status().Missing })
}

// TestLeaderThatDies: a mirror whose leader dies before the other member has everything is
// told as failed, and goes on once the leader is back.
func TestLeaderThatDies(t *testing.T) {
	a, b := mem(t, crashSize), mem(t, crashSize)
	k := backstoretest.NewClient(t, a, backstoretest.NewLoop(t, false))
	data := backstoretest.Pattern(4096, 1)
	k.Write(t, 2*regionLeast, data)
	leader := errstore.Wrap(a, errstore.Rule{Kinds: []backstore.Kind{backstore.Read}, Err: errBroken})
	m := openMirror(t, mirrorOf(leader, b, mem(t, MapSize)))
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		if !bytes.Equal(a.Bytes(), b.Bytes()) {
			t.Error("the members differ")
		}
	})
	failed := func() bool {
		return slices.ContainsFunc(m.Troubles(), func(t backstore.Trouble) bool { return t.Failed })
	}
	eventually.Holds(t, "the failure is told", failed)
	leader.SetRules()
	if _, err := m.Rejoin(t.Context()); err != nil {
		t.Fatal(err)
	}
	whole(t, m)
	if failed() {
		t.Error("it is told as failed still")
	}
	k = backstoretest.NewClient(t, m, backstoretest.NewLoop(t, false))
	if got := k.Read(t, 2*regionLeast, 4096); !bytes.Equal(got, data) {
		t.Error("the data are gone")
	}
}

// TestLeaderThatCannotBeFlushed: when the other member has everything, it goes on alone.
func TestLeaderThatCannotBeFlushed(t *testing.T) {
	leader := errstore.Wrap(mem(t, crashSize), errstore.Rule{Kinds: []backstore.Kind{backstore.Flush}, Err: errBroken})
	m := openMirror(t, mirrorOf(leader, mem(t, crashSize), mem(t, MapSize)))
	t.Cleanup(func() { _ = m.Close() })
	eventually.Finds(t, "the member that is missing", "a", func() string { return m.Status().Missing })
}

// TestPatience: what is of no use is tried more and more seldom, and at once after it was.
func TestPatience(t *testing.T) {
	var p patience
	at := int64(0)
	for _, want := range []time.Duration{rest, 2 * rest, 4 * rest, 8 * rest, 16 * rest, 32 * rest, patienceMost, patienceMost} {
		p.tell(false, at)
		if p.due(at+int64(want)-1) || !p.due(at+int64(want)) {
			t.Errorf("it waits for %v, expected %v", time.Duration(p.wait), want)
		}
		at += int64(want)
	}
	if p.tell(true, at); !p.due(at) {
		t.Error("it waits after it was of use")
	}
}

// steady is a disk without a volatile cache.
type steady struct{ *memstore.Store }

// Info implements backstore.Store.
func (s steady) Info() backstore.Info {
	info := s.Store.Info()
	info.VolatileCache = false
	return info
}

// TestMemberWithACache: a member whose writes a power cut may take does not come to one that has told
// initiators that none does: they would never flush.
func TestMemberWithACache(t *testing.T) {
	chart := mem(t, MapSize)
	c := mirrorOf(steady{mem(t, crashSize)}, mem(t, crashSize), chart)
	m := openMirror(t, c)
	whole(t, m)
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	b := c.Members[1].Open
	c.Members[1].Open = never
	m = openMirror(t, c)
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	m.config.Members[1].Open = b
	if _, err := m.Rejoin(t.Context()); err == nil {
		t.Error("initiators do not know that they have to flush")
	}
}
