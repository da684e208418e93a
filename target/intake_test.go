package target

import "testing"

// TestOnlyWhoHasResponsesLeftIsLeftAlone: only an initiator that has responses left is left alone, for a part
// of the time that it needs for them.
func TestOnlyWhoHasResponsesLeftIsLeftAlone(t *testing.T) {
	// Each pass: how many responses the initiator has looked at in the time since
	// the pass before, and how many it had left when it sent its last command.
	type pass struct {
		took int64 // ns
		seen uint32
		left uint32
	}
	repeat := func(n int, p ...pass) (all []pass) {
		for range n {
			all = append(all, p...)
		}
		return all
	}
	for name, tt := range map[string]struct {
		passes      []pass
		atLeast, to int64 // of the last pass
	}{
		"one command at a time":       {repeat(50, pass{10_000, 1, 0}), -1, -1},
		"keeps up with many":          {repeat(50, pass{40_000, 32, 0}), -1, -1},
		"has few left":                {repeat(50, pass{10_000, 4, restFrom - 1}), -1, -1},
		"is slower":                   {repeat(50, pass{40_000, 10, 24}), 24 * 4000 / 3, 24 * 4000 / 3},
		"looks at all and then sends": {repeat(50, pass{20_000, 5, 0}, pass{20_000, 5, 30}), 4000 * 20 / 3, 4000 * 30 / 3},
		"nothing known yet":           {repeat(1, pass{10_000, 10, 24}), 0, 0},
		"became quick":                {append(repeat(50, pass{40_000, 10, 24}), repeat(20, pass{10_000, 1, 0})...), -1, -1},
		"a pause is not its slowness": {append(append(repeat(50, pass{40_000, 10, 24}), pass{1e9, 16, 24}), repeat(4, pass{40_000, 10, 24})...), 24 * 4000 / 3, 24 * 4500 / 3},
	} {
		var p intake
		now, got := int64(1), int64(0)
		for _, s := range tt.passes {
			now += s.took
			for range s.seen {
				p.seen++
			}
			p.left = s.left
			got = p.judge(now)
		}
		if got < tt.atLeast || got > tt.to {
			t.Errorf("%s: left alone for %d ns, expected %d to %d", name, got, tt.atLeast, tt.to)
		}
	}
}
