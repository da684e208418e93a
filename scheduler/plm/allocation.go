package plm

// Mode says what classes get that ask for less than a window serves.
type Mode uint8

// The modes.
const (
	Headroom Mode = iota // what they are predicted to ask, and the rest 4:2:1
	Literal              // what they are predicted to ask
)

// Rule says who gets what is left beyond the means, if more is asked than a window serves.
type Rule uint8

// The rules.
const (
	Strict Rule = iota // the higher class first
	Fixed              // 4:2:1, to nobody more than asked
)

// Plan is PLMC's division of the deterministic reads of a window.
type Plan struct {
	Reads int64            // that a window serves
	Means [classes]float64 // what the classes ask on average over a long time, per window
	Mode  Mode
	Rule  Rule
}

// Allocate divides the coming window's reads by what the classes will ask.
func (p *Plan) Allocate(asked [classes]float64) Counts {
	all, wanted := float64(p.Reads), 0.0
	for _, v := range asked {
		wanted += v
	}
	if wanted <= all {
		if p.Mode == Headroom {
			for i, w := range weights {
				asked[i] += (all - wanted) * w / 7
			}
		}
		return whole(asked)
	}
	means := p.means()
	residual := all
	var more [classes]float64 // than its mean
	for i, v := range asked {
		residual -= means[i]
		more[i] = max(0, v-means[i])
	}
	extra := strict(more, residual)
	if p.Rule == Fixed {
		extra = fixed(more, residual)
	}
	for i := range extra {
		extra[i] += means[i]
	}
	return whole(extra)
}

// means returns the classes' means, made to fit if a window serves fewer reads.
func (p *Plan) means() [classes]float64 {
	means, sum := p.Means, 0.0
	for _, v := range means {
		sum += v
	}
	if all := float64(p.Reads); sum > all {
		for i := range means {
			means[i] *= all / sum
		}
	}
	return means
}

// strict serves the classes in their order.
func strict(more [classes]float64, residual float64) (extra [classes]float64) {
	for i, v := range more {
		extra[i] = min(v, residual)
		residual -= extra[i]
	}
	return extra
}

// fixed divides 4:2:1 until nobody wants more or nothing is left.
func fixed(more [classes]float64, residual float64) (extra [classes]float64) {
	for range more { // each time a class has all that it wants, or it is the last
		sum := 0.0
		for i, w := range weights {
			if extra[i] < more[i] {
				sum += w
			}
		}
		if sum == 0 {
			break
		}
		left := residual
		for i, w := range weights {
			if extra[i] < more[i] {
				got := min(residual*w/sum, more[i]-extra[i])
				extra[i], left = extra[i]+got, left-got
			}
		}
		residual = left
	}
	return extra
}

// Predictor foresees what classes will ask.
type Predictor struct {
	weight   float64 // of the last window
	expected [classes]float64
}

// NewPredictor expects means at first. Half of what it expects comes from the last window.
func NewPredictor(means [classes]float64) *Predictor {
	return &Predictor{0.5, means}
}

// Asked tells what the classes have asked in a window.
func (p *Predictor) Asked(c Counts) {
	for i, n := range c {
		p.expected[i] = p.weight*float64(n) + (1-p.weight)*p.expected[i]
	}
}

// Expected returns what they will ask in the next one.
func (p *Predictor) Expected() [classes]float64 { return p.expected }

// Use judges a window for a class that had a share and asked for reads: which part of the
// share it used, and which part of its reads went beyond.
func Use(share, asked int64) (used, beyond float64) {
	served := min(share, asked)
	if share > 0 {
		used = float64(served) / float64(share)
	}
	if asked > served {
		beyond = float64(asked-served) / float64(asked)
	}
	return used, beyond
}
