package pshift

// topSets are the buckets that may move: per server the M with most tokens (as
// source) and the M with most spare demand (as sink). They are taken before
// shifting and stay.
type topSets struct {
	source, sink []bool // as the matrices of an Instance
}

func newTopSets(p *Instance, m int) *topSets {
	t := &topSets{make([]bool, len(p.Tokens)), make([]bool, len(p.Tokens))}
	tokens, spare := make([]ranked, p.Buckets), make([]ranked, p.Buckets)
	for j := range p.Servers {
		for i := range p.Buckets {
			at := i*p.Servers + j
			tokens[i] = ranked{at, uint64(p.Tokens[at])}
			spare[i] = ranked{at, uint64(p.Demand[at] - p.Tokens[at])}
		}
		choose(t.source, tokens, m)
		choose(t.sink, spare, m)
	}
	return t
}

// choose marks the m that are ahead: the larger, the lower bucket on a tie.
func choose(set []bool, buckets []ranked, m int) {
	selectTop(buckets, m)
	for _, b := range buckets[:m] {
		set[b.index] = true
	}
}

// mask returns what the bucket and server at an index may move: nothing from
// where it is no source, nothing to where it is no sink.
func (t *topSets) mask(at int, tokens, spare int64) (int64, int64) {
	if !t.source[at] {
		tokens = 0
	}
	if !t.sink[at] {
		spare = 0
	}
	return tokens, spare
}
