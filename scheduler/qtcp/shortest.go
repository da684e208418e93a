package qtcp

// remembered is how long, in ns, a time counts among the shortest: a path that has become
// longer is no congestion for ever.
const remembered = 60_000_000_000

// Shortest is the shortest of the times of the last minute or two. The zero value has none.
type Shortest struct {
	recent, before int64 // 0: none
	since          int64 // that recent is of
}

// Take takes a time in ns, at least 0, that was measured at now, and returns the shortest.
func (s *Shortest) Take(time, now int64) int64 {
	if now-s.since > remembered {
		s.before, s.recent, s.since = s.recent, 0, now
	}
	if s.recent == 0 || time+1 < s.recent {
		s.recent = time + 1
	}
	if s.before > 0 {
		return min(s.before, s.recent) - 1
	}
	return s.recent - 1
}
