package windows

import (
	"bytes"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/errstore"
	"lunar/backstore/memstore"
	"lunar/internal/eventually"
	"lunar/internal/evloop"
)

// TestWipeOfTheLog: after a wipe the fast device has nothing of what was written, and the
// volume still has it.
func TestWipeOfTheLog(t *testing.T) {
	fast := mem(t, ExcessLeast)
	c := excessOf(mem(t, crashSize), fast)
	c.Large, c.Window = 1<<40, time.Hour
	x := openExcess(t, c)
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	k := backstoretest.NewClient(t, x, backstoretest.NewLoop(t, false))
	secret := backstoretest.Pattern(4096, 1)
	k.Write(t, 0, secret)
	if !bytes.Contains(fast.Bytes(), secret) {
		t.Fatal("the write did not go to the fast device")
	}
	// The devices of this test have nothing to wipe themselves.
	_ = k.Do(backstore.Op{Kind: backstore.Wipe})
	if bytes.Contains(fast.Bytes(), secret) {
		t.Error("the fast device has it still")
	}
	if !bytes.Equal(k.Read(t, 0, 4096), secret) {
		t.Error("the volume has it no more")
	}
}

// careless releases ranges as some disks do: what they read as is anything.
type careless struct{ *memstore.Store }

// Info implements backstore.Store.
func (s careless) Info() backstore.Info {
	info := s.Store.Info()
	info.DiscardZeroes = false
	return info
}

// Lane implements backstore.Store.
func (s careless) Lane(l *evloop.Loop) (backstore.Lane, error) {
	inner, err := s.Store.Lane(l)
	return carelessLane{inner}, err
}

type carelessLane struct{ backstore.Lane }

// TryNow implements backstore.Lane.
func (l carelessLane) TryNow(op *backstore.Op) bool {
	return op.Kind == backstore.Discard || l.Lane.TryNow(op)
}

// TestResyncOfADiskWithOldData: where the leader has nothing, the other member reads as
// zeroes, whatever a release there leaves.
func TestResyncOfADiskWithOldData(t *testing.T) {
	first, old := mem(t, crashSize), mem(t, crashSize)
	for i, s := range []backstore.Store{first, old} { // a first member without anything would not lead
		k := backstoretest.NewClient(t, s, backstoretest.NewLoop(t, false))
		k.Write(t, int64(i)<<20, backstoretest.Pattern(4096, uint64(i)+1))
	}
	m := openMirror(t, mirrorOf(first, careless{old}, mem(t, MapSize)))
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	whole(t, m)
	if !bytes.Equal(old.Bytes(), first.Bytes()) {
		t.Error("a member has data that the leader has not")
	}
}

// TestWipeOfAMemberThatFails: one member that cannot wipe is dropped, whoever it is; the
// other one has wiped.
func TestWipeOfAMemberThatFails(t *testing.T) {
	for i, name := range []string{"a", "b"} {
		var members [2]*errstore.Store
		for i := range members {
			members[i] = errstore.Wrap(mem(t, crashSize))
		}
		c := mirrorOf(members[0], members[1], mem(t, MapSize))
		c.Window = time.Hour
		m := openMirror(t, c)
		m.poke()
		whole(t, m)
		k := backstoretest.NewClient(t, m, backstoretest.NewLoop(t, false))
		k.Write(t, 0, backstoretest.Pattern(4096, 1))
		members[i].SetRules(errstore.Rule{Kinds: []backstore.Kind{backstore.Wipe}, Err: errBroken})
		if err := k.Do(backstore.Op{Kind: backstore.Wipe}); err != nil {
			t.Errorf("a wipe that %s failed: %v", name, err)
		}
		eventually.Finds(t, "the member that is missing", name, func() string { return m.Status().Missing })
		if got := k.Read(t, 0, 4096); !bytes.Equal(got, backstoretest.Pattern(4096, 1)) {
			t.Error("the data are gone")
		}
		for i := range members {
			members[i].SetRules(errstore.Rule{Kinds: []backstore.Kind{backstore.Wipe}, Err: errBroken})
		}
		if err := k.Do(backstore.Op{Kind: backstore.Wipe}); err == nil {
			t.Error("a wipe that all failed was well")
		}
		t.Cleanup(func() {
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
