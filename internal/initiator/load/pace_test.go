package load

import "testing"

// TestBurst: the commands of a second become due at once, are sent no faster
// than the rate, and those that were late come with the next ones, but not more
// than that.
func TestBurst(t *testing.T) {
	const second, start = int64(1e9), int64(1e9) + 300e6
	p, sent := newPace(1000, 50), map[int64]int{}
	for now := start; now < 5*second; now += 100_000 {
		for (now < 3*second || now >= 4*second+second/2) && p.due(now) { // the target takes nothing for a while
			p.took()
			sent[now/10e6]++
			if n := sent[now/10e6]; n > 12 {
				t.Fatalf("found %d commands in 10 ms at %d, expected at most 12", n, now)
			}
		}
		if at := p.when(); p.burst > 0 && p.left == 0 && at%second != 0 {
			t.Fatalf("found that the next burst is due at %d", at)
		}
	}
	count := func(from, to int64) (n int) {
		for at, k := range sent {
			if at*10e6 >= from && at*10e6 < to {
				n += k
			}
		}
		return n
	}
	for i, c := range []struct {
		from, to int64
		want     int
	}{{start, 2 * second, 50}, {2 * second, 2*second + 60e6, 50}, {2*second + 60e6, 4 * second, 0}, {4 * second, 5 * second, 50}} {
		if n := count(c.from, c.to); n != c.want {
			t.Errorf("%d: found %d commands from %d to %d, expected %d", i, n, c.from, c.to, c.want)
		}
	}
}
