package haechi

import "sync/atomic"

// Pool is Haechi's global pool G: tokens that belong to nobody. It is the one
// thing that event threads and the monitor share; a thread touches it once per
// batch, not per command.
type Pool struct{ tokens atomic.Int64 }

// Fetch is FetchAndAdd(G, -batch): it returns the tokens granted, min(batch,
// G) if G was positive and else 0. The pool falls by the whole batch, so it
// may become negative.
func (p *Pool) Fetch(batch int64) int64 {
	old := p.tokens.Add(-batch) + batch
	return max(0, min(batch, old))
}

// Settle takes what an engine that goes owes: nobody else would pay for it.
func (p *Pool) Settle(e *Engine) {
	if owed := -e.local; owed > 0 {
		p.tokens.Add(-owed)
	}
}

// Tokens returns what the pool holds, negative if more was asked for.
func (p *Pool) Tokens() int64 { return p.tokens.Load() }

// Set replaces what the pool holds.
func (p *Pool) Set(tokens int64) { p.tokens.Store(tokens) }
