package server

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// Vitals tells how the process is, for who restarts it or sends initiators to it.
type Vitals interface {
	// Alive is nil if the server does what it is to, whatever its volumes do. It returns
	// an error when ctx ends.
	Alive(ctx context.Context) error
	// Ready is nil if initiators can log in.
	Ready() error
}

// The paths of probes. Whoever reaches a port may ask them.
const (
	alivePath = "/healthz"
	readyPath = "/readyz"
)

// probeTime bounds a probe: those who ask give up soon.
const probeTime = 5 * time.Second

// probes answers them. Nil vitals are always well.
type probes struct{ vitals Vitals }

// ask returns what is wrong; ok is false for a path that is no probe's.
func (p probes) ask(r *http.Request) (wrong error, ok bool) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead || r.URL.Path != alivePath && r.URL.Path != readyPath {
		return nil, false
	}
	if p.vitals == nil {
		return nil, true
	}
	if r.URL.Path == readyPath {
		return p.vitals.Ready(), true
	}
	ctx, cancel := context.WithTimeout(r.Context(), probeTime)
	defer cancel()
	return p.vitals.Alive(ctx), true
}

// ServeHTTP implements http.Handler, for those who may know why.
func (p probes) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.answer(w, r, true) }

// brief answers a probe without reasons, which have names; false: it is none.
func (p probes) brief(w http.ResponseWriter, r *http.Request) bool { return p.answer(w, r, false) }

func (p probes) answer(w http.ResponseWriter, r *http.Request, why bool) bool {
	wrong, ok := p.ask(r)
	if !ok {
		return false
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	text := "ok"
	if wrong != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		if text = "not ok"; why {
			text = wrong.Error()
		}
	}
	fmt.Fprintln(w, text)
	return true
}
