package pshift

import "lunar/internal/invariants"

// Options sets how tokens are shifted, not where to: Parts and Run give
// the same result as none. TopM changes the result.
type Options struct {
	TopM  int      // buckets per server that may move; 0 is all
	Run   Executor // runs the parts; nil is serial
	Parts int      // how many parts the work is split into
}

// Shift is pShift's progressive shifting: tokens leave servers that hold more
// than their capacity for servers that hold less, over paths of the movement
// map, short ones first. Each bucket keeps its tokens and stays prudent, and
// without TopM no other such allocation has a larger Effective.
func (p *Instance) Shift(options Options) {
	p.count()
	if !p.movable() {
		return
	}
	s := &shifter{movement: newMovement(p, options), from: make([]int, p.Servers), queue: make([]int, 0, p.Servers)}
	for depth := 1; depth < p.Servers; depth++ {
		if !s.pass(depth) {
			return
		}
	}
}

// movable reports whether a server has tokens above its capacity and another one has room: else the
// movement map, which costs more than all else, would be made for nothing.
func (p *Instance) movable() bool {
	over, room := false, false
	for j, total := range p.totals {
		over, room = over || total > p.Capacity[j], room || total < p.Capacity[j]
	}
	return over && room
}

// shifter is the state of one Shift.
type shifter struct {
	*movement
	from  []int // the search's predecessor of each server, -1 unseen
	queue []int
	path  []int

	changes []change // of one hop
	cut     bool     // a search ended for its depth
}

// pass moves what can be moved over paths of at most depth hops. It reports
// whether longer paths can help.
func (s *shifter) pass(depth int) bool {
	progress, overloaded := false, false
	s.cut = false
	for server := range s.p.Servers {
		for s.excess(server) > 0 {
			path := s.search(server, depth)
			if path == nil {
				overloaded = true
				break
			}
			s.move(path)
			progress = true
		}
	}
	return overloaded && (progress || s.cut)
}

// excess is γ, the tokens above a server's capacity; negative is room (δ).
func (s *shifter) excess(server int) int64 { return s.p.totals[server] - s.p.Capacity[server] }

// search finds the shortest path of at most depth hops from a server to one
// with room, lower servers first; nil if there is none.
func (s *shifter) search(start, depth int) []int {
	for i := range s.from {
		s.from[i] = -1
	}
	s.from[start] = start
	s.queue = append(s.queue[:0], start)
	end, level := 1, 0
	for at := 0; at < len(s.queue); at++ {
		if at == end {
			end, level = len(s.queue), level+1
		}
		if level == depth {
			s.cut = true
			return nil
		}
		if found := s.expand(s.queue[at]); found >= 0 {
			return s.trace(found)
		}
	}
	return nil
}

// expand visits the unseen neighbours of u; it returns one with room, or -1.
func (s *shifter) expand(u int) int {
	row := s.sums[u*s.p.Servers : (u+1)*s.p.Servers]
	for v, weight := range row {
		if weight == 0 || s.from[v] >= 0 {
			continue
		}
		s.from[v] = u
		if s.excess(v) < 0 {
			return v
		}
		s.queue = append(s.queue, v)
	}
	return -1
}

// trace returns the path to a server that a search found.
func (s *shifter) trace(v int) []int {
	s.path = append(s.path[:0], v)
	for s.from[v] != v {
		v = s.from[v]
		s.path = append(s.path, v)
	}
	for i, j := 0, len(s.path)-1; i < j; i, j = i+1, j-1 {
		s.path[i], s.path[j] = s.path[j], s.path[i]
	}
	return s.path
}

// move shifts as much as the path's ends and edges allow.
func (s *shifter) move(path []int) {
	amount := min(s.excess(path[0]), -s.excess(path[len(path)-1]))
	for hop := 1; hop < len(path); hop++ {
		amount = min(amount, s.sums[path[hop-1]*s.p.Servers+path[hop]])
	}
	before := s.effective()
	for hop := 1; hop < len(path); hop++ {
		s.hop(path[hop-1], path[hop], amount)
	}
	if invariants.Enabled {
		invariants.Assert(s.effective() == before+amount, "a shift raises the effective tokens by what it moved")
	}
}

func (s *shifter) effective() int64 {
	if !invariants.Enabled {
		return 0
	}
	return s.p.Effective()
}

// hop moves tokens from u to v, bucket by bucket.
func (s *shifter) hop(u, v int, amount int64) {
	s.p.totals[u] -= amount
	s.p.totals[v] += amount
	tokens, spare := s.tokensOf[u*s.p.Buckets:][:s.p.Buckets], s.spareOf[v*s.p.Buckets:][:s.p.Buckets]
	s.changes = s.changes[:0]
	for i := 0; amount > 0; i++ {
		if t := min(amount, tokens[i], spare[i]); t > 0 {
			amount -= t
			s.changes = append(s.changes, s.transfer(i, u, v, t))
		}
	}
	s.update(u, v, s.changes)
}

// transfer moves t tokens of bucket i from u to v.
func (s *shifter) transfer(i, u, v int, t int64) change {
	c, atU, atV := change{bucket: i}, i*s.p.Servers+u, i*s.p.Servers+v
	c.tokensU, c.spareU, c.tokensV, c.spareV = s.tokens[atU], s.spare[atU], s.tokens[atV], s.spare[atV]
	s.p.Tokens[atU] -= t
	s.p.Tokens[atV] += t
	s.load(i, u)
	s.load(i, v)
	c.tokensU2, c.spareU2, c.tokensV2, c.spareV2 = s.tokens[atU], s.spare[atU], s.tokens[atV], s.spare[atV]
	invariants.Assert(s.p.Tokens[atU] >= 0 && s.p.Tokens[atV] <= s.p.Demand[atV], "a shift stays prudent")
	return c
}
