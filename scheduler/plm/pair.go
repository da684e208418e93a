package plm

// Pair is two sets that hold the same data. At most one of them is not deterministic,
// unless a device forces it.
type Pair struct{ sets [2]*Set }

// NewPair returns a pair whose deterministic windows begin.
func NewPair(c Config, now int64) *Pair {
	return &Pair{[2]*Set{NewSet(c, now), NewSet(c, now)}}
}

// Set returns a set of the pair.
func (p *Pair) Set(i int) *Set { return p.sets[i] }

// Advance leaves and enters windows of both.
func (p *Pair) Advance(now int64) {
	for i, s := range p.sets {
		s.Advance(now, p.sets[1-i].nd)
	}
	if first := p.first(); !p.sets[0].nd && !p.sets[1].nd && p.sets[1-first].until-now <= p.sets[first].config.LongND+p.sets[first].config.Guard {
		// Its partner's window would end within the work of this one.
		p.sets[first].enterND(now)
	}
}

// first returns the set whose window ends first.
func (p *Pair) first() int {
	if p.sets[1].until < p.sets[0].until {
		return 1
	}
	return 0
}

// Working returns the set that is not deterministic, -1 if both are.
func (p *Pair) Working() int {
	for i, s := range p.sets {
		if s.nd {
			return i
		}
	}
	return -1
}

// Work returns the set that is not deterministic. If both are, the one whose window ends
// first leaves it for what cannot be held by both.
func (p *Pair) Work(now int64) int {
	if p.Working() < 0 {
		s := p.sets[p.first()]
		s.Urge()
		s.Advance(now, false)
	}
	return p.Working()
}

// Hand has a set work from now on, and its partner be deterministic.
func (p *Pair) Hand(to int, now int64) {
	if partner := p.sets[1-to]; partner.nd {
		partner.enterDT(now)
	}
	if s := p.sets[to]; !s.nd {
		s.enterND(now)
	}
}

// Reader returns the set that a read goes to, and whether its time is the promised one.
func (p *Pair) Reader() (set int, deterministic bool) {
	a, b := p.sets[0], p.sets[1]
	switch {
	case a.nd && b.nd:
		return 0, false
	case a.nd:
		return 1, true
	case b.nd:
		return 0, true
	case b.reads > a.reads:
		return 1, true
	}
	return 0, true
}
