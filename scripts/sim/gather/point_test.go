package gather

import (
	"slices"
	"testing"

	"lunar/scheduler/batch"

	"pgregory.net/rapid"
)

const ms, second = int64(1e6), int64(1e9)

func static(level int, delay int64) batch.Config {
	return batch.Config{Mode: batch.Static, Level: level, Delay: delay}
}

// TestMessages: algorithms.md C, Tyche 2: when messages leave, and with how many.
func TestMessages(t *testing.T) {
	type message struct {
		at int64
		n  int
	}
	for _, c := range []struct {
		level    int
		arrivals []int64
		want     []message
	}{
		{8, []int64{0, ms, 2 * ms}, []message{{5 * ms, 3}}},
		{2, []int64{0, ms, 2 * ms}, []message{{ms, 2}, {7 * ms, 1}}},
	} {
		b := New(static(c.level, batch.TycheDelay), 0)
		var got []message
		for now := int64(0); now < 20*ms; now += ms / 2 {
			if slices.Contains(c.arrivals, now) {
				b.Add(true, now)
			}
			if n := b.Ready(now); n > 0 {
				b.Sent(n, now, now)
				got = append(got, message{now, n})
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("level %d: found %v, expected %v", c.level, got, c.want)
		}
	}
}

// TestWhoMayWait: algorithms.md C, Tyche 4, and the urgent class.
func TestWhoMayWait(t *testing.T) {
	b := New(static(8, batch.TycheDelay), 0)
	for _, c := range []struct {
		bytes  int
		urgent bool
		want   bool
	}{{4096, false, true}, {512, false, true}, {8192, false, false}, {512, true, false}} {
		if got := b.Gathers(c.bytes, c.urgent); got != c.want {
			t.Errorf("%d bytes, urgent %v: found %v", c.bytes, c.urgent, got)
		}
	}
}

// TestCounters: why batches left.
func TestCounters(t *testing.T) {
	b := New(static(2, 50), 0)
	leave := func(now int64) {
		n := b.Ready(now)
		b.Sent(n, now, now)
	}
	b.Add(false, 0)
	leave(0)
	b.Add(true, 10)
	leave(10)
	b.Add(true, 20)
	leave(20)
	b.Add(true, 100)
	leave(149)
	leave(150)
	b.Add(true, 200)
	leave(200)
	b.Expect(false)
	leave(201)
	if got, want := b.Counters(), (Counters{Requests: 5, Batches: 4, Full: 1, Alone: 2, Late: 1}); got != want {
		t.Errorf("found %+v, expected %+v", got, want)
	}
	if _, ok := b.Deadline(); ok || b.Waiting() != 0 {
		t.Error("expected nothing to wait")
	}
}

// TestBacklog: what the thread has left to work on counts as waiting for the level,
// and only for that.
func TestBacklog(t *testing.T) {
	for _, c := range []struct{ backlog, want int }{{0, 1}, {30, 16}} {
		b := New(batch.Config{Mode: batch.Adaptive, Delay: batch.TycheDelay}, 0)
		b.Backlog(c.backlog, 0)
		if b.Ready(0) != 0 || b.Waiting() != 0 {
			t.Errorf("found %d ready of %d that wait, expected none", b.Ready(0), b.Waiting())
		}
		b.Completed(4096, second/2)
		b.Observe(second)
		if b.Level() != c.want {
			t.Errorf("backlog of %d: found level %d, expected %d", c.backlog, b.Level(), c.want)
		}
	}
}

// TestNoneIsLateOrLost: with a caller that follows Ready and Deadline, every request
// leaves once and in order, none waits longer than the delay, none that is alone
// waits at all, and with batching off none waits.
func TestNoneIsLateOrLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := batch.Config{
			Mode:  batch.Mode(rapid.IntRange(0, 2).Draw(t, "mode")),
			Level: rapid.IntRange(1, 9).Draw(t, "level"), Max: rapid.IntRange(1, 9).Draw(t, "max"),
			Delay: rapid.Int64Range(0, 40).Draw(t, "delay"), Interval: ms,
		}
		b := New(c, 0)
		var waiting []int64
		sent, added, now := 0, 0, int64(0)
		send := func() {
			for n := b.Ready(now); n > 0; n = b.Ready(now) {
				oldest := now
				if n < len(waiting) {
					oldest = waiting[n]
				}
				for _, since := range waiting[:n] {
					if now-since > c.Delay || c.Mode == batch.Off && now != since {
						t.Fatalf("one waited for %d ns of %d", now-since, c.Delay)
					}
				}
				waiting = waiting[n:]
				b.Sent(n, oldest, now)
				b.Completed(512*n, now)
				sent += n
			}
		}
		for range rapid.IntRange(1, 100).Draw(t, "requests") {
			next := now + rapid.SampledFrom([]int64{0, 1, 7, 30, ms}).Draw(t, "pause")
			if at, ok := b.Deadline(); ok && at < next {
				now = max(now, at)
				send()
			}
			now = next
			more := rapid.Bool().Draw(t, "more")
			b.Add(more, now)
			waiting = append(waiting, now)
			added++
			send()
			if b.Waiting() != len(waiting) || b.Waiting() >= b.Level() || !more && len(waiting) > 0 {
				t.Fatalf("found %d waiting at level %d, expected %d; others under way: %v", b.Waiting(), b.Level(), len(waiting), more)
			}
		}
		b.Expect(false)
		send()
		if n := b.Counters(); sent != added || n.Requests != uint64(added) || n.Batches != n.Full+n.Alone+n.Late {
			t.Fatalf("found %d sent of %d, %+v", sent, added, n)
		}
	})
}

// TestSameCallsSameDecisions: nothing but the calls decides.
func TestSameCallsSameDecisions(t *testing.T) {
	run := func() (decisions []int) {
		b := New(batch.Config{Mode: batch.Adaptive, Delay: batch.TycheDelay, Interval: ms}, 0)
		for i := range int64(20_000) {
			now := i * 7919
			b.Add(i%3 != 0, now)
			n := b.Ready(now)
			b.Sent(n, now, now)
			b.Completed(int(i%5000), now)
			decisions = append(decisions, n, b.Level())
		}
		return decisions
	}
	if !slices.Equal(run(), run()) {
		t.Error("two runs of the same calls differ")
	}
}

// event is what one request costs at a gathering point: it joins, is looked at,
// leaves with the others and is counted.
func event(b *Point, now int64) {
	b.Add(true, now)
	if b.Ready(now) > 0 {
		b.Sent(b.Waiting(), now, now)
	}
	b.Completed(4096, now)
}

func TestNoAllocation(t *testing.T) {
	b, now := New(batch.Config{Mode: batch.Adaptive, Delay: batch.ServerDelay, Interval: ms}, 0), int64(0)
	if n := testing.AllocsPerRun(10_000, func() {
		now += 5000
		event(&b, now)
	}); n != 0 {
		t.Errorf("found %v allocations per request", n)
	}
}

func BenchmarkBatch(b *testing.B) {
	for name, c := range map[string]batch.Config{
		"off":      {},
		"static":   static(8, batch.ServerDelay),
		"adaptive": {Mode: batch.Adaptive, Delay: batch.ServerDelay},
	} {
		b.Run(name, func(b *testing.B) {
			point, now := New(c, 0), int64(0)
			b.ReportAllocs()
			for b.Loop() {
				now += 5000
				event(&point, now)
			}
		})
	}
}
