package target

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"lunar/internal/places"
	"lunar/internal/refusals"
	"lunar/target/login"
	"lunar/target/pdu"
)

// admission is who has a place in login, a session or a discovery session, and
// what is known of who wants one. Server.mu protects it.
type admission struct {
	logins      places.Table[io.Closer]
	sessions    places.Table[*Session] // normal ones
	discoveries places.Table[*Session]

	guests   *places.Memory // who had sessions before the start
	proofs   *simplelru.LRU[netip.Addr, struct{}]
	attempts *places.Buckets[netip.Addr] // at a login, by host
	guesses  *places.Buckets[guesser]    // of CHAP secrets
}

// Bounds of what is remembered of addresses, and what of them may be forgotten.
const (
	maxRemembered = 4096

	// loginGrace is how long a login may take although others are turned away for
	// it: many times what one takes, far less than half-open connections hold on.
	loginGrace = time.Second
	// discoveryGrace is the same for a discovery session.
	discoveryGrace = 30 * time.Second
	// reservedTime is how long places are reserved for those who had sessions before the
	// start: initiators try for minutes to log in again.
	reservedTime = 5 * time.Minute
	// maxTSIH is how many sessions have a handle (RFC 7143 section 11.12.6).
	maxTSIH = 65535
)

// attemptRate is how many logins of an address cost it nothing: those of strangers, and
// those that fail. Whoever has more waits before the next one is listened to, but no
// longer than mostPause. So a stranger whose logins succeed does not have the CPU that
// event threads need either.
var attemptRate = places.Rate{Burst: 256, Every: 20 * time.Millisecond}

const mostPause = 2 * time.Second

func newAdmission(guests map[places.Guest]int, sessions int) admission {
	proofs, _ := simplelru.NewLRU[netip.Addr, struct{}](maxRemembered, nil) // fails for sizes below one alone
	return admission{
		proofs: proofs, attempts: places.NewBuckets[netip.Addr](maxRemembered),
		guesses: places.NewBuckets[guesser](maxRemembered),
		guests:  places.NewMemory(guests, sessions, time.Now().Add(reservedTime)),
	}
}

// Guests returns who has normal sessions, and how many, for the Config of a server
// that takes over. Those who have not come back yet since the start are among them.
func (s *Server) Guests() map[places.Guest]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	guests := s.mu.admission.guests.Left(time.Now())
	for n := range s.mu.admission.sessions.Keys() {
		guests[n.guest()]++
	}
	return guests
}

func (l *Limits) knows(a netip.Addr) bool {
	return slices.ContainsFunc(l.Known, func(p netip.Prefix) bool { return p.Contains(a) })
}

// loginBounds are those of connections in login. Those who are no strangers have
// as many places besides as there are sessions.
func (l *Limits) loginBounds(c places.Class) places.Bounds {
	b := places.Bounds{Places: l.LoginConnections, PerHolder: l.LoginsPerAddress, PerNetwork: l.LoginsPerNetwork, Patience: loginGrace}
	if c != places.Stranger {
		b.Places += l.Sessions
	}
	return b
}

func (l *Limits) sessionBounds() places.Bounds {
	return places.Bounds{Places: l.Sessions, PerHolder: l.SessionsPerAddress, PerNetwork: l.SessionsPerNetwork}
}

func (l *Limits) discoveryBounds() places.Bounds {
	return places.Bounds{Places: l.LoginConnections, PerHolder: l.LoginsPerAddress, PerNetwork: l.LoginsPerNetwork, Patience: discoveryGrace}
}

// classOf is what is known of an address before anything has come from it.
func (a *admission) classOf(l *Limits, from netip.Addr, now time.Time) places.Class {
	host := places.Host(from)
	switch {
	case l.knows(from):
		return places.Known
	case a.proofs.Contains(host):
		return places.Proven
	case a.guests.Expects(host, now):
		return places.Returning
	}
	return places.Stranger
}

// beginLogin gives a connection a place in login, until endLogin. It returns how long
// the connection is to wait because of the address's logins before.
func (s *Server) beginLogin(conn io.Closer, from netip.Addr) (wait time.Duration, ok bool) {
	from = from.Unmap().WithZone("")
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closing {
		return 0, false
	}
	a, l, now := &s.mu.admission, &s.settings.Load().Limits, time.Now()
	class := a.classOf(l, from, now)
	lost, displaced, ok := a.logins.Take(conn, places.Of(class, from), l.loginBounds(class), 0, now)
	if displaced {
		s.refusals.Add(refusals.LoginDisplaced)
		lost.Close()
	}
	if !ok {
		s.refusals.Add(refusals.LoginPlaces)
		return 0, false
	}
	s.running.Add(1)
	cost := 0
	if class == places.Stranger {
		cost = 1
	}
	return min(mostPause, a.attempts.Delay(places.Host(from), cost, attemptRate, now)), true
}

func (s *Server) endLogin(conn io.Closer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.admission.logins.Release(conn)
	s.running.Done()
}

// loginGoesOn says that a connection in login has sent something that makes sense.
func (s *Server) loginGoesOn(conn io.Closer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.admission.logins.Progress(conn, true)
}

// guest is whom a place is reserved for when the session ends with the server.
func (n *Session) guest() places.Guest {
	return places.Guest{Name: n.initiator.Name, Proven: n.initiator.Proof.String(), Host: places.Host(n.initiator.Addr)}
}

// holder is who the session's place is counted for: whom the initiator has proven
// to be, else its address, because names are free.
func (n *Session) holder(a *admission, now time.Time) places.Holder {
	class := places.Stranger
	switch {
	case n.settings.Limits.knows(n.initiator.Addr):
		class = places.Known
	case n.initiator.Proof.Proven():
		class = places.Proven
	case a.guests.Has(n.guest(), now):
		class = places.Returning
	}
	if n.initiator.Proof.Proven() {
		return places.Holder{Class: class, Name: n.holderName()}
	}
	return places.Of(class, n.initiator.Addr)
}

// logFor returns the log for what somebody at an address brings about. What is known
// of the address is looked at unless he is known anyway.
func (s *Server) logFor(from netip.Addr, known bool) *slog.Logger {
	if !known {
		s.mu.Lock()
		known = s.mu.admission.classOf(&s.settings.Load().Limits, from.Unmap().WithZone(""), time.Now()) != places.Stranger
		s.mu.Unlock()
	}
	return s.journal.Logger(places.Host(from).String(), known)
}

// contest is what a session takes a place of.
type contest struct {
	what          string
	table         *places.Table[*Session]
	bounds        places.Bounds
	refused, gone refusals.Reason
	reserved      int // places for others alone
}

func (a *admission) contestOf(n *Session, h places.Holder, now time.Time) contest {
	l := &n.settings.Limits
	if n.target == nil {
		return contest{"discovery sessions", &a.discoveries, l.discoveryBounds(), refusals.DiscoveryPlaces, refusals.DiscoveryDisplaced, 0}
	}
	c := contest{"sessions", &a.sessions, l.sessionBounds(), refusals.SessionPlaces, refusals.SessionDisplaced, 0}
	if h.Class == places.Stranger {
		c.reserved = a.guests.Reserved(now)
	}
	return c
}

// full is why a holder gets no place.
func (c *contest) full(h places.Holder) *login.Error {
	return login.Errorf(pdu.LoginOutOfResources, "%d %s, of them %d of this initiator's address or user, and %d places kept for others; the limit is %d",
		c.table.Len(), c.what, c.table.Count(h), c.reserved, c.bounds.Places)
}

// takePlace gives a session one of the places, or tells why it gets none. Who
// loses one for it is dropped. The caller holds mu.
func (s *Server) takePlace(n *Session) *login.Error {
	a, now := &s.mu.admission, time.Now()
	if _, ok := a.sessions.Holder(n); ok {
		return nil // it was passed to it
	}
	h := n.holder(a, now)
	c := a.contestOf(n, h, now)
	if len(s.mu.sessions) >= maxTSIH {
		c.bounds.Places = 0
	}
	lost, displaced, ok := c.table.Take(n, h, c.bounds, c.reserved, now)
	if !ok {
		s.refusals.Add(c.refused)
		return c.full(h)
	}
	n.trusted = h.Class != places.Stranger
	if displaced {
		s.refusals.Add(c.gone)
		lost.log().Warn("session dropped", "reason", errDisplaced)
		lost.state.post(func() { lost.state.drop(errDisplaced) })
	}
	if n.target != nil {
		a.guests.Arrived(n.guest())
	}
	if n.initiator.Proof.Proven() {
		a.proofs.Add(places.Host(n.initiator.Addr), struct{}{})
	}
	return nil
}

// passPlace lets the session that replaces another one have its place, before
// somebody else takes it. The caller holds mu.
func (s *Server) passPlace(old, n *Session) {
	a := &s.mu.admission
	h, ok := a.sessions.Holder(old)
	if !ok {
		return
	}
	if was := old.guest(); was != n.guest() {
		now := time.Now()
		h = n.holder(a, now)
		a.guests.Departed(was, now)
		a.guests.Arrived(n.guest())
	}
	n.trusted = h.Class != places.Stranger
	a.sessions.Pass(old, n, h)
}

// releasePlace gives back what takePlace and passPlace gave. The caller holds mu.
func (s *Server) releasePlace(n *Session) {
	a := &s.mu.admission
	a.discoveries.Release(n)
	if _, ok := a.sessions.Holder(n); ok {
		a.sessions.Release(n)
		a.guests.Departed(n.guest(), time.Now())
	}
}

// reasons say why a login was refused, by its status. What is not here broke the
// protocol; what is counted elsewhere has no reason.
var reasons = map[pdu.LoginStatus]refusals.Reason{
	pdu.LoginTargetMovedTemporarily: refusals.LoginPlace,
	pdu.LoginTargetMovedPermanently: refusals.LoginPlace,
	pdu.LoginServiceUnavailable:     refusals.LoginPlace,
	pdu.LoginTargetError:            refusals.LoginPlace,
	pdu.LoginAuthenticationFailure:  refusals.LoginAuth,
	pdu.LoginAuthorizationFailure:   refusals.LoginForbidden,
	pdu.LoginNotFound:               refusals.LoginNotFound,
	pdu.LoginTargetRemoved:          refusals.LoginNotFound,
	pdu.LoginSessionDoesNotExist:    refusals.LoginNotFound,
}

// loginFailed counts a login that has failed, also against its address unless it is
// to be tried again.
func (s *Server) loginFailed(from netip.Addr, why error) {
	reason := refusals.LoginProtocol
	if fault := (*login.Error)(nil); errors.As(why, &fault) {
		if fault.Status() == pdu.LoginOutOfResources {
			return // it was counted when it found no place
		}
		if r, ok := reasons[fault.Status()]; ok {
			reason = r
		}
	}
	if errors.Is(why, net.ErrClosed) {
		return // it has lost its place
	}
	s.refusals.Add(reason)
	if reason == refusals.LoginPlace {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.admission.attempts.Delay(places.Host(from), 1, attemptRate, time.Now())
}
