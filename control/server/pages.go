package server

import (
	"net/http"
	"strings"
	"sync"

	"github.com/prometheus/common/expfmt"
)

// pages makes pages that cost much for one client at a time. Clients that ask
// while a page is being made wait together for the next one, so that many clients cost
// no more than two pages.
type pages struct {
	make http.Handler
	turn chan struct{} // holds one while a page is being made

	mu   sync.Mutex
	next map[form]*page // that somebody waits for and nobody has begun
}

func newPages(made http.Handler) *pages {
	return &pages{make: made, turn: make(chan struct{}, 1), next: make(map[form]*page)}
}

// form is what a client may choose of a page.
type form struct {
	format expfmt.Format
	gzip   bool
}

type page struct {
	reply
	done chan struct{} // closed when it is made
}

// ServeHTTP implements http.Handler.
func (s *pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f := form{expfmt.NegotiateAccept(r.Header, expfmt.DefaultAcceptedFormats()...), strings.Contains(r.Header.Get("Accept-Encoding"), "gzip")}
	p, first := s.join(f)
	if first {
		s.begin(f, p, r)
	}
	select {
	case <-p.done:
	case <-r.Context().Done(): // it has gone
		return
	}
	for name, values := range p.header {
		w.Header()[name] = values
	}
	w.WriteHeader(p.status)
	if a, ok := w.(*reply); ok {
		a.shared = p.body.Bytes()
		return
	}
	w.Write(p.body.Bytes()) //nolint:errcheck // the client has gone
}

// join returns the page that will be made next, and whether the caller has to see to
// that.
func (s *pages) join(f form) (p *page, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p = s.next[f]; p != nil {
		return p, false
	}
	p = &page{reply: reply{header: make(http.Header)}, done: make(chan struct{})}
	s.next[f] = p
	return p, true
}

// begin makes the page when it is its turn.
func (s *pages) begin(f form, p *page, r *http.Request) {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	s.mu.Lock()
	delete(s.next, f)
	s.mu.Unlock()
	defer func() {
		if p.status == 0 { // it has failed, and says so by a panic
			p.status = http.StatusInternalServerError
		}
		close(p.done)
	}()
	ask := &http.Request{Method: r.Method, URL: r.URL, Header: http.Header{"Accept": {string(f.format)}}}
	if f.gzip {
		ask.Header.Set("Accept-Encoding", "gzip")
	}
	s.make.ServeHTTP(&p.reply, ask)
}
