package scheduler

// account is what a ring serves by weight.
type account struct {
	weight  int64
	deficit int64 // what it may still use in its turn; negative is owed
	missed  int64 // when its turn came while a limit held it, counted in turns missed; 0: not
}

// ring is weighted round robin over the numbered accounts of a set, by surplus
// round robin: who is reached gets its weight added and is served until it has
// used it up; what it used too much is owed in the next rounds. With weights
// and costs of 1 it is plain round robin.
//
// Who misses its turn because of a limit that has just been spent has it first
// when the limit lets it, and whose turn a limit breaks off goes on with it: of
// several that share a limit, the first would else spend it each time, the rounds
// of the others would all be in vain, and no weight would count.
type ring struct {
	set    bitset
	at     int    // where to look next
	turn   int    // whose turn it is; -1 nobody's
	used   bool   // the turn was
	missed bitset // those of set that have missed a turn
	misses int64  // turns missed so far
	broken int    // whose turn a limit broke off; -1 nobody's
}

func newRing() ring { return ring{turn: -1, broken: -1} }

func (r *ring) grow(n int) {
	r.set.grow(n)
	r.missed.grow(n)
}

// add takes an account in.
func (r *ring) add(i int, a *account) {
	r.set.add(i)
	if a.missed > 0 {
		r.missed.add(i)
	}
	if r.broken != i { // another's turn was broken off since
		a.deficit = min(a.deficit, 0)
	}
}

// pick returns whose turn it is; -1 if the set is empty.
func (r *ring) pick(accounts []*account) int {
	if r.turn >= 0 || r.set.count == 0 {
		return r.turn
	}
	return r.begin(accounts)
}

// begin gives somebody the turn.
func (r *ring) begin(accounts []*account) int {
	if i := r.broken; i >= 0 && r.set.has(i) {
		r.broken, r.turn, r.used = -1, i, true
		return i
	}
	r.used = false
	if r.missed.count > 0 && r.makeUp(accounts) {
		return r.turn
	}
	for !r.circle(accounts) {
		r.skip(accounts)
	}
	return r.turn
}

// makeUp gives the turn to who missed it first, but for who is still paying.
func (r *ring) makeUp(accounts []*account) bool {
	for r.missed.count > 0 {
		first := r.missed.from(0)
		for i := first; i >= 0; i = r.missed.from(i + 1) {
			if accounts[i].missed < accounts[first].missed {
				first = i
			}
		}
		a := accounts[first]
		r.missed.remove(first)
		a.missed = 0
		if a.deficit += a.weight; a.deficit > 0 {
			r.turn = first
			return true
		}
	}
	return false
}

// circle goes round once at most, to the first that may use something.
func (r *ring) circle(accounts []*account) bool {
	for range r.set.count {
		i := r.set.next(r.at)
		r.at = i + 1
		a := accounts[i]
		if a.deficit += a.weight; a.deficit > 0 {
			r.turn = i
			return true
		}
	}
	return false
}

// skip does the rounds at once in which all would still be paying.
func (r *ring) skip(accounts []*account) {
	rounds := int64(1 << 62)
	for i := r.set.from(0); i >= 0; i = r.set.from(i + 1) {
		rounds = min(rounds, -accounts[i].deficit/accounts[i].weight)
	}
	for i := r.set.from(0); i >= 0; i = r.set.from(i + 1) {
		accounts[i].deficit += rounds * accounts[i].weight
	}
}

// charge books a cost to whose turn it is; who is alone needs none.
func (r *ring) charge(i int, a *account, cost int64) {
	if r.turn != i {
		return
	}
	r.used = true
	if a.deficit -= cost; a.deficit <= 0 {
		r.turn = -1
	}
}

// pause ends the turn of an account that has nothing to use for now, and may stay
// where it is. What it did not use is lost.
func (r *ring) pause(i int, a *account) {
	if r.turn == i {
		r.turn = -1
	}
	a.deficit = min(a.deficit, 0)
}

// remove takes an account out; what it did not use is lost. With throttled, a limit is
// the reason: if it has not used its turn, it will make up for it, and if it has
// begun to, it will go on.
func (r *ring) remove(i int, a *account, throttled bool) {
	r.set.remove(i)
	if a.missed > 0 {
		r.missed.remove(i)
	}
	if r.broken == i {
		if throttled {
			return
		}
		r.broken = -1
	}
	if r.turn == i {
		r.turn, a.missed = -1, 0
		switch {
		case throttled && r.used:
			r.broken = i
			return
		case throttled:
			r.misses++
			a.missed = r.misses
		}
	}
	a.deficit = min(a.deficit, 0)
}
