package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"lunar/internal/loglimit"
	"lunar/internal/refusals"
)

// Server is a control API that is being served.
type Server struct {
	log      *slog.Logger
	journal  *loglimit.Journal // the log for what clients bring about
	refusals *refusals.Counters
	answers  answers
	pages    *http.ServeMux // of the metrics' port
	running  sync.WaitGroup

	mu struct {
		sync.Mutex
		socket, metrics *http.Server
		at              net.Addr // of metrics
		guard           *guard   // of metrics
		stopped         bool
	}
}

// Serve opens the socket, and the TCP port of the metrics if there is to be
// one, and serves until Stop. An error wraps ErrInUse if another process serves
// the socket.
func Serve(c Config) (*Server, error) {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	metrics := scrape(c.Source)
	s := &Server{log: c.Logger, refusals: c.Refusals, answers: answers{now: time.Now}, pages: metricsOnly(metrics)}
	s.journal = loglimit.New(c.Logger, time.Now)
	socket, err := listen(c.Socket)
	if err != nil {
		return nil, err
	}
	if err := s.MoveMetrics(c.Metrics); err != nil {
		return nil, errors.Join(err, socket.Close())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.socket = s.serve(socket, audited(newAPI(c, metrics), c.Logger), applyBody(c.MaxFile))
	return s, nil
}

// MetricsAddr returns the TCP address of the metrics; nil: none.
func (s *Server) MetricsAddr() net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.at
}

// MoveMetrics serves the metrics elsewhere or to others, as Config.Metrics. After an
// error they are where they were, unless it says that they are not.
func (s *Server) MoveMetrics(p MetricsPort) error {
	g, err := newGuard(p, s)
	if err != nil {
		return err
	}
	to := p.Address
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.stopped {
		return errors.New("the control API has ended")
	}
	if to == "" {
		s.closeMetrics()
		return nil
	}
	port, err := net.Listen("tcp", to)
	if errors.Is(err, syscall.EADDRINUSE) && s.mu.metrics != nil { // maybe by all addresses of the port, or one of them
		was := s.mu.at.String()
		s.closeMetrics()
		if port, err = net.Listen("tcp", to); err != nil {
			back, lost := net.Listen("tcp", was)
			if lost != nil {
				return fmt.Errorf("metrics (server.metrics): %w; they are not served at %s any more either: %w", err, was, lost)
			}
			s.serveMetrics(back, s.mu.guard)
		}
	}
	if err != nil {
		return fmt.Errorf("metrics (server.metrics): %w", err)
	}
	s.closeMetrics()
	s.serveMetrics(port, g)
	return nil
}

// serveMetrics and closeMetrics are called under the lock.
func (s *Server) serveMetrics(port net.Listener, g *guard) {
	s.mu.metrics, s.mu.at, s.mu.guard = s.serve(g.over(port), g.only(s.pages), maxBody), port.Addr(), g
}

// closeMetrics breaks off those who are asking.
func (s *Server) closeMetrics() {
	if s.mu.metrics != nil {
		s.mu.metrics.Close()
		s.mu.metrics, s.mu.at = nil, nil
	}
}

func (s *Server) serve(l net.Listener, mux http.Handler, body int64) *http.Server {
	h := &http.Server{
		Handler:           s.answers.first(bounds(mux, body)),
		ReadHeaderTimeout: readTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeader,
		ConnContext:    withConn,
		ErrorLog:       slog.NewLogLogger(s.journal.Logger("", false).Handler(), slog.LevelWarn),
	}
	limited := &crowd{Listener: l, refusals: s.refusals}
	s.running.Go(func() {
		if err := h.Serve(limited); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("control API ended", "address", l.Addr().String(), "err", err)
		}
	})
	return h
}

// Stop ends the API and removes the socket. Requests under way are finished
// first, until ctx ends; the rest is broken off. A nil Server has nothing to
// stop.
func (s *Server) Stop(ctx context.Context) {
	if s == nil {
		return
	}
	s.mu.Lock()
	s.mu.stopped = true
	servers := []*http.Server{s.mu.socket}
	if s.mu.metrics != nil {
		servers = append(servers, s.mu.metrics)
	}
	s.mu.Unlock()
	for _, h := range servers {
		if err := h.Shutdown(ctx); err != nil {
			s.log.Warn("control API: requests were broken off", "err", err)
			h.Close()
		}
	}
	s.running.Wait()
}

// bounds limits the body of every request.
func bounds(next http.Handler, body int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, body)
		next.ServeHTTP(w, r)
	})
}
