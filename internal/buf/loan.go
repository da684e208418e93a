package buf

// Loan is memory of another owner behind a Ref, so that what sends from buffers
// can send from it without a copy. It is embedded in the lender's own record of
// what it has lent and reused, so that lending allocates nothing.
type Loan struct {
	ref   Ref
	data  []byte
	owner Lender
	node  int // of SendFrom, plus 1
}

// Lender hears of the last Release of what it has lent, on the thread of the
// Loan's Pool. The memory is its own again.
type Lender interface{ Returned(*Loan) }

// Lend makes l a loan of data with one reference, which the caller must Release
// as one of a buffer of the pool; whoever waits for memory of the pool hears of
// the last Release too. owner keeps data as they are until Returned.
func (p *Pool) Lend(l *Loan, data []byte, owner Lender) *Ref {
	if l.ref.count != 0 {
		panic("buf: a loan was lent again before it was returned")
	}
	l.data, l.owner, l.node = data, owner, 0
	l.ref = Ref{pool: p, size: uint32(len(data)), count: 1, loan: l}
	return &l.ref
}

// Lent reports whether the Ref is a loan.
func (r *Ref) Lent() bool { return r.loan != nil }

// SendFrom asks whoever sends the loan to let a thread of a NUMA node do so.
func (r *Ref) SendFrom(node int) { r.loan.node = node + 1 }

// Node is the node of SendFrom, if anybody has asked.
func (r *Ref) Node() (node int, ok bool) {
	if r.loan == nil || r.loan.node == 0 {
		return 0, false
	}
	return r.loan.node - 1, true
}

// ChargeAs counts the buffer's bytes where other's are counted, as Charge does,
// if they are.
func (r *Ref) ChargeAs(other *Ref) {
	if other.account != nil {
		r.Charge(other.account)
	}
}

// repay gives a loan back.
func (l *Loan) repay() {
	pool, owner := l.ref.pool, l.owner
	l.data, l.owner, l.ref = nil, nil, Ref{}
	owner.Returned(l)
	if pool.freed != nil {
		pool.freed()
	}
}
