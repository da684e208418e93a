package windows

import (
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/errstore"
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
	m := openMirror(t, c)
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	m.poke()
	whole(t, m)
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
