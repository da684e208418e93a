package windows

import (
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func mem(t testing.TB, size int64) *memstore.Store { return memory(t, size, false) }

func memory(t testing.TB, size int64, async bool) *memstore.Store {
	t.Helper()
	s, err := memstore.New(memstore.Config{Size: size, Async: async})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// always opens the same store.
func always(s backstore.Store) func() (backstore.Store, error) {
	return func() (backstore.Store, error) { return s, nil }
}

func never() (backstore.Store, error) { return nil, errors.New("unplugged") }

func mirrorOf(a, b, chart backstore.Store) MirrorConfig {
	return MirrorConfig{
		Name: "v", Members: [2]Member{{Name: "a", Open: always(a)}, {Name: "b", Open: always(b)}}, Map: chart, Held: 1 << 20, Window: 2 * time.Millisecond,
	}
}

func openMirror(t testing.TB, c MirrorConfig) *Mirror {
	t.Helper()
	m, err := OpenMirror(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// openWhole opens a mirror that the test closes, and returns when its members are alike.
func openWhole(t *testing.T, c MirrorConfig) *Mirror {
	t.Helper()
	m := openMirror(t, c)
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	m.poke()
	whole(t, m)
	return m
}

// TestMirrorConforms: a mirror is a store like any other, whoever leads.
func TestMirrorConforms(t *testing.T) {
	for name, window := range map[string]time.Duration{"exchanging": time.Millisecond, "one window": time.Hour} {
		t.Run(name, func(t *testing.T) {
			backstoretest.Run(t, backstoretest.Subject{Open: func(t *testing.T) backstore.Store {
				async := window == time.Hour
				c := mirrorOf(memory(t, backstoretest.Size, async), memory(t, backstoretest.Size, async), mem(t, MapSize))
				c.Window = window
				return openMirror(t, c)
			}})
		})
	}
}
