package tyche

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"testing"

	"lunar/scheduler/batch"
	"lunar/scripts/sim/experiment"
	"lunar/scripts/sim/experiment/experimenttest"
)

// TestExperiments: every row's reduced size meets its criteria.
func TestExperiments(t *testing.T) {
	experimenttest.Run(t, Experiments())
}

// TestOneBatch: 32 requests in one batch are one message there and one back, when
// the slowest is done (algorithms C, Tyche 3).
func TestOneBatch(t *testing.T) {
	l := &load{direction: &reads, config: batch.Config{Mode: batch.Static, Level: 32, Delay: batch.TycheDelay, Interval: 1e9}, small: 32, seed: 1}
	sent := reads.cost(32, 1)
	if l.run(sent + 40_000); l.done != 0 || l.inflight != 32 {
		t.Errorf("found %d done and %d under way while the message was, expected 0 and 32", l.done, l.inflight)
	}
	l.kernel.Run(sent + 60_000)
	if l.done != 32 {
		t.Errorf("found %d done after the message, expected 32", l.done)
	}
	if n := l.batch.Counters(); n.Batches != 2 || n.Requests != 64 {
		t.Errorf("found %+v, expected the first batch and the next", n)
	}
}

// TestSameLog: the same seed decides the same, byte for byte, and another does not.
func TestSameLog(t *testing.T) {
	logOf := func(seed uint64) string {
		var log bytes.Buffer
		s := newScale(&experiment.Env{Seed: seed, Reduced: true, Log: &log})
		l := s.load(&writes, s.adaptive(), 16, 2)
		l.kernel.After(s.interval, 0, l.submitLarge)
		l.run(4 * s.interval)
		if v := l.violations(); len(v) > 0 {
			t.Errorf("invariants: %v", v)
		}
		for _, word := range []string{" send ", " level ", " large"} {
			if !bytes.Contains(log.Bytes(), []byte(word)) {
				t.Errorf("no%sin the log", word)
			}
		}
		return fmt.Sprintf("%x", sha256.Sum256(log.Bytes()))
	}
	if a, b := logOf(1), logOf(1); a != b {
		t.Error("two logs of one seed differ")
	}
	if a, b := logOf(1), logOf(2); a == b {
		t.Error("two seeds give the same log")
	}
}

// TestArrivals: groups leave in order, and parts of them.
func TestArrivals(t *testing.T) {
	var q arrivals
	q.push(10, 3)
	q.push(20, 2)
	if since := q.take(4); since != 50 || q.n != 1 || q.oldest() != 20 {
		t.Errorf("found a sum of %d, %d left, the oldest of %d", since, q.n, q.oldest())
	}
	if since := q.take(1); since != 20 || q.n != 0 || q.oldest() != 0 {
		t.Errorf("found a sum of %d, %d left, the oldest of %d", since, q.n, q.oldest())
	}
}
