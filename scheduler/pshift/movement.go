package pshift

// Executor runs work(0) ... work(parts-1), all of them before it returns, in
// any order or at the same time. It is how a caller lends threads to a
// computation: the package itself starts none.
type Executor func(parts int, work func(part int))

// serial is the Executor of one thread.
func serial(parts int, work func(part int)) {
	for part := range parts {
		work(part)
	}
}

// movement is the token movement map. TM(u,v)[i] = min(a_i^u, d_i^v − a_i^v)
// is how many tokens of bucket i could go from u to v without becoming a
// strong excess there; only its sums over the buckets are stored. The
// movable tokens (a and d−a, with the top sets applied) are kept twice: by bucket,
// for updates, and by server, for building and searching.
type movement struct {
	p                 *Instance
	top               *topSets
	sums              []int64 // TMS(u,v) at u*Servers+v; the diagonal is 0
	run               Executor
	parts             int
	tokens, spare     []int64 // of bucket i on server j at i*Servers+j
	tokensOf, spareOf []int64 // of bucket i on server j at j*Buckets+i
}

func newMovement(p *Instance, options Options) *movement {
	m := p.moves
	if m == nil {
		n := p.Buckets * p.Servers
		m = &movement{
			p: p, sums: make([]int64, p.Servers*p.Servers),
			tokens: make([]int64, n), spare: make([]int64, n), tokensOf: make([]int64, n), spareOf: make([]int64, n),
		}
		p.moves = m
	}
	clear(m.sums)
	m.top, m.run, m.parts = nil, options.Run, max(1, options.Parts)
	if m.run == nil {
		m.run, m.parts = serial, 1
	}
	if options.TopM > 0 && options.TopM < p.Buckets {
		m.top = newTopSets(p, options.TopM)
	}
	m.run(m.parts, m.loadBuckets)
	m.run(m.parts, m.build)
	return m
}

// part is the share of n that a part of the work has.
func (m *movement) part(part, n int) (from, to int) {
	return part * n / m.parts, (part + 1) * n / m.parts
}

// loadBuckets loads a part's buckets, in blocks that keep both layouts near.
func (m *movement) loadBuckets(part int) {
	from, to := m.part(part, m.p.Buckets)
	for i := from; i < to; i++ {
		for j := range m.p.Servers {
			m.load(i, j)
		}
	}
}

// load notes what bucket i may move from and to server j.
func (m *movement) load(i, j int) {
	at := i*m.p.Servers + j
	a := m.p.Tokens[at]
	spare := m.p.Demand[at] - a
	if m.top != nil {
		a, spare = m.top.mask(at, a, spare)
	}
	m.tokens[at], m.spare[at] = a, spare
	m.tokensOf[j*m.p.Buckets+i], m.spareOf[j*m.p.Buckets+i] = a, spare
}

// block is how many buckets build takes at a time, so that their columns of
// all servers stay in the processor's cache.
const block = 128

// build computes the rows of a part's source servers.
func (m *movement) build(part int) {
	from, to := m.part(part, m.p.Servers)
	for at := 0; at < m.p.Buckets; at += block {
		end := min(at+block, m.p.Buckets)
		for u := from; u < to; u++ {
			tokens, row := m.tokensOf[u*m.p.Buckets:][at:end], m.sums[u*m.p.Servers:][:m.p.Servers]
			for v := range row {
				if u != v {
					row[v] += sumOfMins(tokens, m.spareOf[v*m.p.Buckets:][at:end])
				}
			}
		}
	}
}

// sumOfMins is the inner loop of the map: S² times B.
func sumOfMins(a, b []int64) int64 {
	var s0, s1 int64
	b = b[:len(a)]
	i := 0
	for ; i+1 < len(a); i += 2 {
		s0 += min(a[i], b[i])
		s1 += min(a[i+1], b[i+1])
	}
	if i < len(a) {
		s0 += min(a[i], b[i])
	}
	return s0 + s1
}

// change is one bucket's part in a hop from u to v: what it may move there
// before, and after.
type change struct {
	bucket                               int
	tokensU, spareU, tokensV, spareV     int64
	tokensU2, spareU2, tokensV2, spareV2 int64
}

// update brings the edges in and out of u and v in line with the changes. The
// servers k at the other ends are divided into parts: no two parts touch the
// same sum.
func (m *movement) update(u, v int, changes []change) {
	parts := m.parts
	if len(changes)*m.p.Servers < minParallel {
		parts = 1
	}
	if parts == 1 {
		m.updateEnds(u, v, 0, m.p.Servers, changes)
	} else {
		m.run(parts, func(part int) {
			from, to := m.part(part, m.p.Servers)
			m.updateEnds(u, v, from, to, changes)
		})
	}
	for n := range changes {
		c := &changes[n]
		m.sums[u*m.p.Servers+v] += min(c.tokensU2, c.spareV2) - min(c.tokensU, c.spareV)
		m.sums[v*m.p.Servers+u] += min(c.tokensV2, c.spareU2) - min(c.tokensV, c.spareU)
	}
}

// minParallel is the number of edge updates below which handing them to other
// threads costs more than it saves.
const minParallel = 1 << 13

func (m *movement) updateEnds(u, v, from, to int, changes []change) {
	servers := m.p.Servers
	for n := range changes {
		c := &changes[n]
		tokens, spare := m.tokens[c.bucket*servers:][:servers], m.spare[c.bucket*servers:][:servers]
		for k := from; k < to; k++ {
			a, d := tokens[k], spare[k]
			if a|d == 0 || k == u || k == v { // most buckets are on few servers
				continue
			}
			m.sums[u*servers+k] += min(c.tokensU2, d) - min(c.tokensU, d)
			m.sums[v*servers+k] += min(c.tokensV2, d) - min(c.tokensV, d)
			m.sums[k*servers+u] += min(a, c.spareU2) - min(a, c.spareU)
			m.sums[k*servers+v] += min(a, c.spareV2) - min(a, c.spareV)
		}
	}
}

// Overloaded says which servers have more tokens after Shift than they can serve,
// and to which full ones these could go.
func (p *Instance) Overloaded() []bool {
	m, over := newMovement(p, Options{}), make([]bool, p.Servers)
	for j := range over {
		over[j] = p.totals[j] > p.Capacity[j]
	}
	for range over { // as far as paths may be long
		for u := range over {
			for v := range over {
				over[v] = over[v] || over[u] && m.sums[u*p.Servers+v] > 0
			}
		}
	}
	return over
}
