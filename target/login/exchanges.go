package login

import "sync"

// Exchanges is what the logins of a server know of each other's CHAP exchanges. Any
// goroutine may use it; the zero value is ready.
//
// It finds reflections (RFC 7143 section 12.1.3): who holds no secret sends the
// challenge that it was given on one connection as its own on another, and the target's
// answer back. That works if one secret is used in both directions, in whatever groups,
// which nobody but the target can see.
//
// It also remembers how strong a hash each user has proven, because the list of
// algorithms is not protected: a man in the middle could have MD5 chosen.
type Exchanges struct {
	mu      sync.Mutex
	begun   uint64
	pending map[string]uint64 // challenges that may still be answered, by when they were made
	answers map[string]uint64 // responses of the target, as long as one of those is older
	proven  map[Proof]proven
}

// proven is the best that a user has shown.
type proven struct {
	secret    Secret
	algorithm Algorithm
}

// maxProven bounds the users that are remembered. A configuration has fewer.
const maxProven = 64 << 10

// challenged notes a challenge of the target.
func (x *Exchanges) challenged(challenge []byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.pending == nil {
		x.pending = make(map[string]uint64)
	}
	x.begun++
	x.pending[string(challenge)] = x.begun
}

// over notes that a challenge cannot be answered any more, and forgets the responses
// that were of interest for it alone.
func (x *Exchanges) over(challenge []byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.pending, string(challenge))
	oldest := x.begun + 1
	for _, at := range x.pending {
		oldest = min(oldest, at)
	}
	for response, at := range x.answers {
		if at < oldest {
			delete(x.answers, response)
		}
	}
}

// answer notes a response that the target is about to give to a challenge. It is false
// if one of them is the target's own.
func (x *Exchanges) answer(challenge, response []byte) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, own := x.pending[string(challenge)]; own {
		return false
	}
	if x.answers == nil {
		x.answers = make(map[string]uint64)
	}
	x.answers[string(response)] = x.begun
	return true
}

// answered reports whether a response is one that the target has given.
func (x *Exchanges) answered(response []byte) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	_, own := x.answers[string(response)]
	return own
}

// rank orders the algorithms by what a collision or a guess costs. SHA-256 and SHA3-256
// are equal: nobody gains by having one chosen for the other.
func (a Algorithm) rank() int {
	switch a {
	case MD5:
		return 1
	case SHA1:
		return 2
	case SHA256, SHA3256:
		return 3
	}
	return 0
}

// prove notes what the user has proven, and returns the stronger algorithm that it has
// proven before, if there is one among those that are allowed now. Another secret, or
// the end of that permission, makes the user a new one.
func (x *Exchanges) prove(user Proof, secret Secret, by Algorithm, allowed []Algorithm) (stronger Algorithm, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	best := 0
	for _, a := range allowed {
		best = max(best, a.rank())
	}
	was, known := x.proven[user]
	if known && was.secret.Equal(secret) && by.rank() < was.algorithm.rank() && was.algorithm.rank() <= best {
		return was.algorithm, false
	}
	if x.proven == nil || len(x.proven) >= maxProven {
		x.proven = make(map[Proof]proven)
	}
	x.proven[user] = proven{secret, by}
	return by, true
}
