package windows

import (
	"bytes"
	"slices"
	"testing"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/errstore"
	"lunar/backstore/memstore"
)

// compared is a mirror of two members that are alike, while somebody writes.
func compared(t *testing.T, a, b backstore.Store) (m *Mirror, w *owners) {
	t.Helper()
	m = openMirror(t, mirrorOf(a, b, mem(t, MapSize)))
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	whole(t, m)
	return m, work(t, m, crashSize/2, 1, 2)
}

func scrubbed(t *testing.T, m *Mirror) Scrubbed {
	t.Helper()
	s, err := m.Scrub(t.Context(), func(int64) {})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestScrubFindsDifferences: whoever writes meanwhile, members differ only where somebody
// has changed one behind the mirror's back, and that stays as it is.
func TestScrubFindsDifferences(t *testing.T) {
	a, b := mem(t, crashSize), mem(t, crashSize)
	m, w := compared(t, a, b)
	if s := scrubbed(t, m); s.Regions > 0 || s.Compared != crashSize || s.Mended > 0 {
		t.Errorf("found %+v, expected no differences", s)
	}
	const at = crashSize - 5<<10
	put(t, b, at, []byte{1})
	s := scrubbed(t, m)
	if want := []int64{crashSize - 1<<20}; s.Regions != 1 || !slices.Equal(s.Differs, want) {
		t.Errorf("found %+v, expected a region at %v", s, want)
	}
	if b.Bytes()[at] != 1 || a.Bytes()[at] != 0 {
		t.Error("a member was changed, and nobody knew which is right")
	}
	if m.Status().Differ != 1 || len(m.Troubles()) == 0 {
		t.Errorf("found %+v, expected that the difference is told", m.Status())
	}
	if err := w.stop(); err != nil {
		t.Error(err)
	}
	m.gate.Lock()
	err := m.drop(m.other(), errBroken)
	m.gate.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Rejoin(t.Context()); err != nil {
		t.Fatal(err)
	}
	whole(t, m)
	if all := m.Troubles(); m.Status().Differ != 0 || len(all) > 0 {
		t.Errorf("found %+v and %+v, expected that nothing is wrong once all was copied", m.Status(), all)
	}
}

// TestDifferencesThatAreGone: what a later comparison finds takes the place of what an earlier
// one has found, and a cut what lay behind it.
func TestDifferencesThatAreGone(t *testing.T) {
	a, b := mem(t, crashSize), mem(t, crashSize)
	m := openMirror(t, mirrorOf(a, b, mem(t, MapSize)))
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	whole(t, m)
	for _, at := range []int64{1 << 20, crashSize - 4096} {
		put(t, b, at, []byte{1})
	}
	scrubbed(t, m)
	put(t, b, 1<<20, []byte{0})
	scrubbed(t, m)
	if n := m.differing.count(); n != 1 {
		t.Errorf("%d regions differ, expected 1", n)
	}
	if err := m.Resize(crashSize / 2); err != nil {
		t.Fatal(err)
	}
	if n := m.differing.count(); n != 0 {
		t.Errorf("%d regions differ, expected none", n)
	}
}

// TestScrubMends: what one member cannot read, whoever leads, it gets from the other.
func TestScrubMends(t *testing.T) {
	for i := range 2 {
		stores := [2]*memstore.Store{mem(t, crashSize), mem(t, crashSize)}
		for _, s := range stores {
			k := backstoretest.NewClient(t, s, backstoretest.NewLoop(t, false))
			k.Write(t, crashSize-8<<10, backstoretest.Pattern(4096, 1))
		}
		members := [2]*errstore.Store{errstore.Wrap(stores[0]), errstore.Wrap(stores[1])}
		m, w := compared(t, members[0], members[1])
		members[i].SetRules(errstore.Rule{Kinds: []backstore.Kind{backstore.Read}, Off: crashSize - 8<<10, Len: 4096, Err: errBroken, Times: 1})
		if s := scrubbed(t, m); s.Mended == 0 || s.Regions > 0 {
			t.Errorf("member %d: found %+v, expected something that was mended", i, s)
		}
		whole(t, m)
		if s := scrubbed(t, m); s.Regions > 0 {
			t.Errorf("member %d: found %+v, expected members that are alike", i, s)
		}
		if err := w.stop(); err != nil {
			t.Error(err)
		}
		if m.Status().Missing != "" || !bytes.Equal(stores[0].Bytes()[crashSize/2:], stores[1].Bytes()[crashSize/2:]) {
			t.Error("a member was dropped, or they differ")
		}
	}
}
