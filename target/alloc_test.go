package target_test

import (
	"encoding/binary"
	"runtime"
	"testing"
	"time"

	"lunar/internal/initiator"
)

// Steady state I/O allocates nothing, from the socket to the store and back.
// What is counted is the whole process, its runtime included, so a few
// allocations that do not grow with the commands are allowed.
func TestCommandsDoNotAllocate(t *testing.T) {
	const depth, size, rounds = 32, 4096, 50
	for name, write := range map[string]bool{"read": false, "write": true} {
		r := newRig(t, rigOptions{})
		login := r.login(initiator.Options{CmdSN: 1})
		allowed := uint64(rounds * depth / 50)
		if n := mallocs(newBatch(t, login, write, depth, size), 10, rounds, allowed, 0); n > allowed {
			t.Errorf("%s: %d allocations in %d commands", name, n, rounds*depth)
		}
	}
}

// newBatch returns what sends depth commands of size bytes on a connection that has
// logged in, and takes their responses.
func newBatch(t testing.TB, login *initiator.Conn, write bool, depth, size int) func() {
	return batchOf(newBenchConn(t, login, depth, size), write, depth, size)
}

// newBenchConn goes on with a connection that has logged in, with room for depth commands of
// size bytes.
func newBenchConn(t testing.TB, login *initiator.Conn, depth, size int) *benchConn {
	c := &benchConn{b: t, stream: login.Transport(), in: make([]byte, depth*(48+size)), out: make([]byte, 0, depth*(48+size))}
	c.cmdSN = binary.BigEndian.Uint32(nextCmdSN(t, login))
	return c
}

// mallocs counts the allocations of the whole process in rounds of f, after some
// that do not count: the least of many counts, until one is no more than enough. On a
// loaded machine the rounds take long, and what is allocated now and then counts more:
// so many a second are not counted.
func mallocs(f func(), warmup, rounds int, enough uint64, aSecond float64) uint64 {
	for range warmup {
		f()
	}
	least := ^uint64(0)
	for range 40 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := time.Now()
		for range rounds {
			f()
		}
		runtime.ReadMemStats(&after)
		now := after.Mallocs - before.Mallocs
		if least = min(least, now-min(now, uint64(aSecond*time.Since(began).Seconds()))); least <= enough {
			break
		}
	}
	return least
}
