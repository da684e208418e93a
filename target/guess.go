package target

import (
	"errors"
	"net/netip"
	"time"

	"lunar/internal/iscsiname"
	"lunar/internal/places"
	"lunar/internal/refusals"
	"lunar/target/login"
)

// guessRate is how often an address, and the logins of a user, may be wrong about a
// CHAP secret: those that are more often have to wait for the answer, one after the
// other, but no longer than mostGuessWait, nor than half of the time that a login may
// take. Who is right never waits. The connection keeps its place in login meanwhile, so
// that many connections are no way around it.
var guessRate = places.Rate{Every: 250 * time.Millisecond}

const mostGuessWait = 5 * time.Second

// guesser is whose guesses are counted: a host's, or those at one user.
type guesser struct {
	host netip.Addr
	user login.Proof
}

// guesses count what was wrong with proofs.
var guesses = map[login.Guess]refusals.Reason{
	login.Wrong:     refusals.CHAPWrong,
	login.Reflected: refusals.CHAPReflected,
	login.Weaker:    refusals.CHAPWeaker,
}

// punish holds back the answer to a wrong proof, and reports whether there is to be one:
// a server that ends meanwhile answers nobody early. It blocks the connection's own
// goroutine alone.
func (p *loginPhase) punish(why error) bool {
	var fault *login.Error
	if !errors.As(why, &fault) || fault.Guess == login.NoGuess {
		return true
	}
	s, user := p.server, p.negotiation.Claimed()
	s.refusals.Add(guesses[fault.Guess])
	wait := min(s.guessed(p.transport.Remote().Addr(), user, time.Now()), mostGuessWait, p.settings.Limits.LoginTimeout/2)
	p.log.Warn("CHAP failed", "user", iscsiname.Printable(user.String()), "initiator", p.negotiation.InitiatorName(),
		"target", iscsiname.Printable(p.negotiation.TargetName()), "reason", fault.Reason, "answered_in", wait)
	return s.pause(wait)
}

// guessed counts a wrong proof and returns how long its answer has to wait.
func (s *Server) guessed(from netip.Addr, user login.Proof, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.mu.admission.guesses
	host := b.Delay(guesser{host: places.Host(from.Unmap().WithZone(""))}, 1, guessRate, now)
	return max(host, b.Delay(guesser{user: user}, 1, guessRate, now))
}
