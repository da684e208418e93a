package windows

import (
	"sync"
	"testing"
)

// TestIdentityWhileRolesChange: whoever asks for the identity may do so at any time.
func TestIdentityWhileRolesChange(t *testing.T) {
	m := openMirror(t, mirrorOf(mem(t, crashSize), mem(t, crashSize), mem(t, MapSize)))
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	m.poke()
	whole(t, m)
	var changes sync.WaitGroup
	changes.Go(func() {
		for range 100 {
			if err := m.exchange(); err != nil {
				t.Error(err)
			}
		}
	})
	was := m.Identity()
	for range 1000 {
		if m.Identity() != was {
			t.Error("the identity has changed")
		}
	}
	changes.Wait()
}
