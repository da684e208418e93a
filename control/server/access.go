package server

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"

	"lunar/control"
	"lunar/control/webpage"
	"lunar/internal/places"
	"lunar/internal/refusals"
)

// admitted finds out who asks, and turns away who has no role.
func (s *Server) admitted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := callerOf(r.Context())
		switch {
		case c.Role != control.NoRole:
			if p := placeOf(r.Context()); p != nil {
				p.proves()
			}
			next.ServeHTTP(w, r)
		case r.TLS == nil && s.probes.brief(w, r):
		case r.TLS == nil:
			s.refusals.Add(refusals.ControlUser)
			s.journal.Logger(fmt.Sprint("user ", c.Name), false).Warn("control API refused", "by", c.String(), "reason", "it is neither root, the server's user, nor in a group that may ask")
			problem(w, http.StatusForbidden, "found "+c.String()+", expected root, the server's user, or a member of a group of server.control")
		default:
			s.turnAway(w, r, c)
		}
	})
}

// turnAway refuses somebody over TCP. Answers to guesses wait, and so do those to who asks
// again and again; the connection has no place meanwhile that others could have, nor once
// it is answered.
func (s *Server) turnAway(w http.ResponseWriter, r *http.Request, c Caller) {
	at, _ := netip.ParseAddrPort(r.RemoteAddr)
	guessed := r.Header.Get("Authorization") != ""
	wait := s.admission.wait(at.Addr(), guessed)
	if p := placeOf(r.Context()); wait > 0 && p != nil && !p.waits(r.Context(), wait) {
		panic(http.ErrAbortHandler) // the client has gone, or others need its place
	}
	w.Header().Set("Connection", "close")
	if s.probes.brief(w, r) {
		return
	}
	s.refusals.Add(refusals.ControlToken)
	why := "neither token nor certificate"
	switch {
	case guessed:
		why = "a wrong token"
	case c.Name != "":
		why = "a certificate whose name is in no list"
	}
	s.journal.Logger(places.Host(at.Addr()).String(), false).Warn("control API refused", "by", c.String(), "reason", "found "+why, "answered_in", wait)
	w.Header().Set("WWW-Authenticate", `Bearer realm="control"`)
	problem(w, http.StatusUnauthorized, "found "+why+", expected a token of server.control.token-file, or a certificate whose name server.control lists")
}

// paged answers with the web page's files, if they are served. They have nothing of the
// server: who has no token sees a field for one.
func (s *Server) paged(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if e := s.entry.Load(); r.TLS != nil && e != nil && e.Page && webpage.Serve(w, r) {
			return
		}
		next.ServeHTTP(w, r)
	})
}

// sameOrigin refuses changes that a browser asks for in the name of another site: it would
// send the certificate of whoever looks at that site.
func sameOrigin(next http.Handler) http.Handler {
	p := http.NewCrossOriginProtection()
	p.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		problem(w, http.StatusForbidden, fmt.Sprintf("found a request of another site's page (Origin %q), expected one of this server's, or of a program", r.Header.Get("Origin")))
	}))
	return p.Handler(next)
}

// judge is who makes a request, as things are now.
func (s *Server) judge(r *http.Request) (c Caller) {
	if p, ok := r.Context().Value(peerKey).(*peer); ok {
		c = p.caller(*s.groups.Load())
	} else if port := s.entry.Load(); port != nil && r.TLS != nil {
		c = port.caller(r)
	}
	return c
}

// identified notes who makes each request.
func (s *Server) identified(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stand := &standing{now: func() Caller { return s.judge(r) }, needs: control.Admin}
		ctx := context.WithValue(r.Context(), callerKey, stand.now())
		next.ServeHTTP(w, r.WithContext(context.WithValue(ctx, standingKey, stand)))
	})
}
