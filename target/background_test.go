package target_test

import (
	"log/slog"
	"strings"
	"sync"
	"testing"

	"lunar/backstore"
	"lunar/backstore/errstore"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
	"lunar/target"
)

// lines is a log that can be read while it is written.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// sanitizeOverwrite asks for one pass of zeroes with IMMED.
func sanitizeOverwrite(t *testing.T, c *initiator.Conn) {
	t.Helper()
	res, err := c.Command([]byte{0x48, 0x81, 0, 0, 0, 0, 0, 0, 8, 0}, 0, []byte{1, 0, 0, 4, 0, 0, 0, 0}, 0)
	mustGood(t, res, err)
}

// TestBackgroundOutlivesItsSession: a sanitize operation goes on when the
// initiator that has asked for it is gone, and others find the medium when it
// has ended.
func TestBackgroundOutlivesItsSession(t *testing.T) {
	ram, err := backstore.NewRAM(1<<20, 512)
	if err != nil {
		t.Fatal(err)
	}
	store := errstore.Wrap(ram, errstore.Rule{Kinds: []backstore.Kind{backstore.Write, backstore.WriteZeroes}, Hold: true})
	r := newRig(t, rigOptions{store: store})
	c := r.login(initiator.Options{})
	sanitizeOverwrite(t, c)
	c.Close()
	c = r.dial(initiator.Options{Target: testTarget})
	eventually.Holds(t, "somebody else sees the operation", func() bool { return testUnitReady(t, c, 0) == [2]byte{0x04, 0x1b} })
	store.SetRules()
	store.Release(-1)
	eventually.Holds(t, "the operation's end", func() bool { return testUnitReady(t, c, 0) == [2]byte{} })
}

// TestShutdownEndsBackgrounds: the server does not wait for what takes long.
func TestShutdownEndsBackgrounds(t *testing.T) {
	log := new(lines)
	t.Cleanup(func() { // after the rig's
		if !strings.Contains(log.String(), "a sanitize operation was not finished") {
			t.Errorf("the log says nothing of it:\n%s", log)
		}
	})
	r := newRig(t, rigOptions{sanitizeRate: 1 << 10, config: target.Config{Logger: slog.New(slog.NewTextHandler(log, nil))}})
	sanitizeOverwrite(t, r.login(initiator.Options{}))
}
