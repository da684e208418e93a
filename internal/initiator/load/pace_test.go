package load

import "testing"

// TestBurst: the commands of a second become due at once, are sent no faster
// than the rate, and those that were late come with the next ones, but not more
// than that.
func TestBurst(t *testing.T) {
	const second, start = int64(1e9), int64(1e9) + 300e6
	p, sent := newPace(1000, 50, 0), map[int64]int{}
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

// TestPhase: connections of one rate send in turn, not all at once.
func TestPhase(t *testing.T) {
	const connections = 10
	var sent [connections]int64
	for i := range sent {
		p := newPace(1, 0, float64(i)/connections)
		now := int64(1e9)
		for ; !p.due(now); now += 1e6 {
		}
		sent[i] = now
	}
	for i := range connections - 2 { // the first may send what it missed before
		if gap := sent[i+2] - sent[i+1]; gap < 99e6 || gap > 101e6 {
			t.Errorf("connection %d sends %d ns after the one before, expected 100 ms", i+2, gap)
		}
	}
}

// TestUnitsInTurn: connections are spread over logical units.
func TestUnitsInTurn(t *testing.T) {
	for i, want := range []uint64{3, 4, 5, 3} {
		if found := (Unit{LUN: 3, Units: 3}).Of(i); found != want {
			t.Errorf("connection %d uses LUN %d, expected %d", i, found, want)
		}
	}
	if found := (Unit{LUN: 3}).Of(7); found != 3 {
		t.Errorf("LUN %d of a single unit, expected 3", found)
	}
}
