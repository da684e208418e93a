package batch

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

const ms, second = 1e6, 1e9

// adaptive returns a level that stands at current after an interval of x bytes.
func adaptive(current int, x int64) *Level {
	var l Level
	l.Start(Config{Mode: Adaptive}, 0)
	l.current, l.before = current, x
	return &l
}

// pass lets one second pass in which x bytes are completed and waiting wait.
func (l *Level) pass(x, waiting int) int {
	l.Waiting(waiting, l.began)
	l.Completed(x, l.began+second/2)
	l.Observe(l.began + second)
	return l.Current()
}

// TestLevelFollowsThroughput: the worked examples of the rule of Tyche.
func TestLevelFollowsThroughput(t *testing.T) {
	for _, c := range []struct {
		current, waiting int
		before           int64
		x, want          int
	}{
		{1, 40, 100, 110, 21},
		{21, 100, 100, 105, 43},
		{21, 30, 100, 95, 11},
		{21, 4, 100, 95, 2},
		{2, 2, 100, 95, 1},
		{21, 100, 100, 103, 21},
		{21, 100, 100, 97, 21},
		{64, 100, 100, 200, 64},
		{1, 64, 0, 1, 33},
		{8, 64, 0, 0, 8},
		{8, 0, 100, 0, 1},
	} {
		if got := adaptive(c.current, c.before).pass(c.x, c.waiting); got != c.want {
			t.Errorf("level %d, %d waiting, from %d to %d bytes: found %d, expected %d", c.current, c.waiting, c.before, c.x, got, c.want)
		}
	}
}

// TestProbe: after ten intervals without a change the neighbours are tried
// (algorithms.md C, Tyche 4).
func TestProbe(t *testing.T) {
	for _, c := range []struct {
		name                          string
		current, lower, higher, after int
	}{
		{"the higher is better", 4, 101, 104, 5},
		{"exactly 3 %", 4, 103, 100, 3},
		{"none is", 4, 102, 102, 4},
		{"both are", 4, 105, 104, 3},
		{"at the bottom", 1, 0, 104, 2},
		{"at the top", 64, 104, 0, 63},
	} {
		l := adaptive(c.current, 100)
		for i := range quiet {
			if l.Current() != c.current {
				t.Fatalf("%s: found level %d in interval %d", c.name, l.Current(), i)
			}
			l.pass(100, 10)
		}
		if c.lower != 0 {
			if l.Current() != c.current-1 {
				t.Errorf("%s: found a probe at %d, expected one less", c.name, l.Current())
			}
			l.pass(c.lower, 10)
		}
		if c.higher != 0 {
			if l.Current() != c.current+1 {
				t.Errorf("%s: found a probe at %d, expected one more", c.name, l.Current())
			}
			l.pass(c.higher, 10)
		}
		if l.Current() != c.after || l.probe != none {
			t.Errorf("%s: found %d, expected %d", c.name, l.Current(), c.after)
		}
		if best := int64(max(100, c.lower, c.higher)); c.after != c.current && l.before != best {
			t.Errorf("%s: found %d bytes/s to compare with, expected %d", c.name, l.before, best)
		}
	}
}

// TestIdleTriesNothing: where nothing comes there is nothing to compare, and what
// waited before weighs nothing.
func TestIdleTriesNothing(t *testing.T) {
	l := adaptive(40, 1000)
	for range 3 * quiet {
		l.pass(0, 0)
		if l.probe != none || l.Current() != 1 {
			t.Fatalf("found level %d, probe %d", l.Current(), l.probe)
		}
	}
}

// TestModes: only adaptive levels change.
func TestModes(t *testing.T) {
	for _, c := range []struct {
		config Config
		want   int
	}{{Config{}, 1}, {Config{Mode: Off, Level: 9}, 1}, {Config{Mode: Static, Level: 100}, 100}, {Config{Mode: Static}, 1}, {Config{Mode: Adaptive, Level: 9}, 1}} {
		var l Level
		l.Start(c.config, 0)
		if got := l.Current(); got != c.want {
			t.Errorf("%+v: found level %d, expected %d", c.config, got, c.want)
		}
		if c.config.Mode != Adaptive && l.pass(100, 64) != c.want {
			t.Errorf("%+v: found level %d after an interval, expected %d", c.config, l.Current(), c.want)
		}
	}
	if got := (&Level{}).Current(); got != 1 {
		t.Errorf("found level %d of the zero value", got)
	}
}

// TestLateInterval: an interval that ended late is no better and no worse.
func TestLateInterval(t *testing.T) {
	l := adaptive(10, 100)
	l.Waiting(40, 0)
	l.Completed(350, second/2)
	l.Completed(350, second-1)
	l.Observe(7 * second)
	if l.Current() != 10 {
		t.Errorf("found level %d after 700 bytes in 7 s, expected 10", l.Current())
	}
}

// model is A4's rule once more, with floating point and without probes.
type model struct {
	level, max int
	before     float64
}

func (m *model) update(x, a float64) {
	next := m.level
	improvement := (x - m.before) / m.before
	switch {
	case m.before == 0 && x > 0 || improvement > 0.03:
		next = int(math.Ceil((float64(m.level) + min(a, float64(m.max))) / 2))
	case m.before > 0 && improvement < -0.03:
		next = int(math.Floor((1 + min(a, float64(m.level))) / 2))
	}
	m.before = x
	m.level = min(max(next, 1), m.max)
}

// TestModel: the level is what the formulas say, always in its bounds, whatever
// the calls between the intervals.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		top := rapid.IntRange(1, 100).Draw(t, "max")
		var l Level
		l.Start(Config{Mode: Adaptive, Max: top}, 0)
		m := model{level: 1, max: top}
		for range rapid.IntRange(1, 40).Draw(t, "intervals") {
			x := rapid.SampledFrom([]int{0, 970, 1000, 1031, 1063, 5000}).Draw(t, "bytes")
			first, then := rapid.IntRange(0, 200).Draw(t, "waiting"), rapid.IntRange(0, 200).Draw(t, "then")
			steps := rapid.Int64Range(1, 999).Draw(t, "at")
			probing := l.probe != none
			l.Waiting(first, l.began)
			l.Completed(x, l.began+steps*ms)
			l.Waiting(then, l.began+steps*ms)
			l.Observe(l.began + second)
			if probing || l.probe != none {
				m.level, m.before = l.current, float64(l.before)
			} else {
				m.update(float64(x), (float64(first)*float64(steps)+float64(then)*float64(1000-steps))/1000)
			}
			if l.Current() != m.level || l.Current() < 1 || l.Current() > top {
				t.Fatalf("found level %d, expected %d of at most %d", l.Current(), m.level, top)
			}
		}
	})
}

// TestProbesComeBack: whatever the throughput, probes end and the level is at most
// one away from where they began.
func TestProbesComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		top := rapid.IntRange(1, 8).Draw(t, "max")
		l := adaptive(rapid.IntRange(1, top).Draw(t, "level"), 1000)
		l.max = top
		from := l.Current()
		for range quiet {
			l.pass(1000, 5)
		}
		for probes := 0; l.probe != none; probes++ {
			if probes == 2 {
				t.Fatal("a third probe")
			}
			l.pass(rapid.IntRange(0, 2000).Draw(t, "bytes"), 5)
		}
		if d := l.Current() - from; d < -1 || d > 1 || l.Current() < 1 || l.Current() > top {
			t.Fatalf("found %d after probes from %d of %d", l.Current(), from, top)
		}
	})
}
