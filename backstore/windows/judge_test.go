package windows

import "testing"

// TestJudge: who leads after a start, who is lost and what is copied, by what the map says
// and what is found. Where data would be missing, nothing is served.
func TestJudge(t *testing.T) {
	a, b, c, d := medium{1}, medium{2}, medium{3}, medium{4}
	const all = 8
	for name, tc := range map[string]struct {
		leader  int
		lost    [2]bool
		differ  bool
		present [2]bool
		now     [2]medium

		wantLeader int
		wantLost   [2]bool
		copies     int
		refused    bool
	}{
		"all is well":                         {present: [2]bool{true, true}, now: [2]medium{a, b}},
		"the second leads":                    {leader: 1, present: [2]bool{true, true}, now: [2]medium{a, b}, wantLeader: 1},
		"they may differ":                     {leader: 1, differ: true, present: [2]bool{true, true}, now: [2]medium{a, b}, wantLeader: 1, copies: 1},
		"the other is missing":                {differ: true, present: [2]bool{true, false}, now: [2]medium{a}, wantLost: [2]bool{false, true}, copies: 1},
		"the leader is missing":               {present: [2]bool{false, true}, now: [2]medium{{}, b}, wantLeader: 1, wantLost: [2]bool{true, false}},
		"the leader is missing, they differ":  {differ: true, present: [2]bool{false, true}, now: [2]medium{{}, b}, refused: true},
		"the leader is missing, other lost":   {lost: [2]bool{false, true}, present: [2]bool{false, true}, now: [2]medium{{}, b}, refused: true},
		"who was lost is back":                {lost: [2]bool{false, true}, differ: true, present: [2]bool{true, true}, now: [2]medium{a, b}, copies: 1},
		"who was lost is back as another":     {lost: [2]bool{false, true}, differ: true, present: [2]bool{true, true}, now: [2]medium{a, c}, copies: all},
		"who was lost is back, unknown":       {lost: [2]bool{false, true}, differ: true, present: [2]bool{true, true}, now: [2]medium{a, {}}, copies: all},
		"the other is another":                {present: [2]bool{true, true}, now: [2]medium{a, c}, copies: all},
		"the leader is another":               {present: [2]bool{true, true}, now: [2]medium{c, b}, wantLeader: 1, copies: all},
		"the leader is another, they differ":  {differ: true, present: [2]bool{true, true}, now: [2]medium{c, b}, refused: true},
		"the leader is another, other lost":   {lost: [2]bool{false, true}, present: [2]bool{true, true}, now: [2]medium{c, b}, refused: true},
		"both are others":                     {present: [2]bool{true, true}, now: [2]medium{c, d}, copies: all},
		"both are others, they differ":        {differ: true, present: [2]bool{true, true}, now: [2]medium{c, d}, refused: true},
		"the only one is another, other lost": {lost: [2]bool{false, true}, differ: true, present: [2]bool{true, false}, now: [2]medium{c}, refused: true},
	} {
		n := note{leader: tc.leader, lost: tc.lost, media: [2]medium{a, b}}
		if tc.differ {
			n.differ.add(3)
		}
		err := n.judge(tc.present, tc.now, all)
		if (err != nil) != tc.refused {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && (n.leader != tc.wantLeader || n.lost != tc.wantLost || n.differ.count() != tc.copies) {
			t.Errorf("%s: leader %d, lost %v, %d regions", name, n.leader, n.lost, n.differ.count())
		}
	}
}
