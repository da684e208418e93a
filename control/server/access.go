package server

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"lunar/control"
	"lunar/internal/places"
	"lunar/internal/refusals"
)

// guessRate is how often an address may send a wrong token; the answer to those that are
// more often waits, but no longer than mostGuessWait.
var guessRate = places.Rate{Every: 250 * time.Millisecond}

const (
	mostGuessWait = 5 * time.Second
	maxGuessers   = 4096 // addresses that are remembered
)

// admitted finds out who asks, and turns away who has no role.
func (s *Server) admitted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := callerOf(r.Context())
		switch {
		case c.Role != control.NoRole:
			next.ServeHTTP(w, r)
		case s.probes.brief(w, r):
		case r.TLS == nil:
			s.refusals.Add(refusals.ControlUser)
			s.journal.Logger(fmt.Sprint("user ", c.Name), false).Warn("control API refused", "by", c.String(), "reason", "it is neither root, the server's user, nor in a group that may ask")
			problem(w, http.StatusForbidden, "found "+c.String()+", expected root, the server's user, or a member of a group of server.control")
		default:
			s.turnAway(w, r, c)
		}
	})
}

// turnAway refuses somebody over TCP; answers to guesses wait.
func (s *Server) turnAway(w http.ResponseWriter, r *http.Request, c Caller) {
	s.refusals.Add(refusals.ControlToken)
	at, _ := netip.ParseAddrPort(r.RemoteAddr)
	host := places.Host(at.Addr().Unmap().WithZone(""))
	why, wait := "neither token nor certificate", time.Duration(0)
	if c.Name != "" {
		why = "a certificate whose name is in no list"
	}
	if r.Header.Get("Authorization") != "" {
		why = "a wrong token"
		s.mu.Lock()
		wait = min(s.mu.guesses.Delay(host, 1, guessRate, time.Now()), mostGuessWait)
		s.mu.Unlock()
	}
	s.journal.Logger(host.String(), false).Warn("control API refused", "by", c.String(), "reason", "found "+why, "answered_in", wait)
	if !pause(r.Context(), wait) {
		return
	}
	w.Header().Set("WWW-Authenticate", `Bearer realm="control"`)
	problem(w, http.StatusUnauthorized, "found "+why+", expected a token of server.control.token-file, or a certificate whose name server.control lists")
}

// pause waits, unless the client goes.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// identified notes who makes each request.
func (s *Server) identified(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var c Caller
		if p, ok := r.Context().Value(peerKey).(*peer); ok {
			c = p.caller(*s.groups.Load())
		} else if port := s.entry.Load(); port != nil && r.TLS != nil {
			c = port.caller(r)
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey, c)))
	})
}
