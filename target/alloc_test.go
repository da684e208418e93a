package target_test

import (
	"encoding/binary"
	"runtime"
	"testing"

	"lunar/internal/initiator"
)

// Steady state I/O allocates nothing, from the socket to the store and back.
// What is counted is the whole process, its runtime included, so a few
// allocations that do not grow with the commands are allowed.
func TestCommandsDoNotAllocate(t *testing.T) {
	const depth, size, rounds = 32, 4096, 100
	for name, write := range map[string]bool{"read": false, "write": true} {
		r := newRig(t, rigOptions{})
		login := r.login(initiator.Options{CmdSN: 1})
		c := &benchConn{b: t, stream: login.Transport(), in: make([]byte, depth*(48+size)), out: make([]byte, 0, depth*(48+size))}
		c.cmdSN = binary.BigEndian.Uint32(nextCmdSN(t, login))
		batch := batchOf(c, write, depth, size)
		for range 10 {
			batch()
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range rounds {
			batch()
		}
		runtime.ReadMemStats(&after)
		if n := after.Mallocs - before.Mallocs; n > rounds*depth/50 {
			t.Errorf("%s: %d allocations in %d commands", name, n, rounds*depth)
		}
	}
}
