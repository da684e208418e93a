package target_test

import (
	"testing"

	"lunar/internal/initiator"
)

// TestFastStoreStaysOnItsThread: no other thread has a part in what a fast store
// serves.
func TestFastStoreStaysOnItsThread(t *testing.T) {
	r := newRig(t, rigOptions{})
	conn := r.login(initiator.Options{})
	handed := func() (n uint64) {
		for _, th := range r.server.Threads() {
			n += th.Handovers
		}
		return n
	}
	before := handed()
	const reads = 300
	for range reads {
		res, err := conn.Command(cdbRead16(0, 8), 0, nil, 4096)
		mustGood(t, res, err)
	}
	if n := handed() - before; n > reads/10 {
		t.Errorf("%d hand-overs in %d reads", n, reads)
	}
}
