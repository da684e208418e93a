package server

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"lunar/control"
	"lunar/internal/loglimit"
	"lunar/internal/refusals"
)

// Server is a control API that is being served.
type Server struct {
	log      *slog.Logger
	journal  *loglimit.Journal // the log for what clients bring about
	trail    *Trail
	refusals *refusals.Counters
	answers  answers
	pages    *http.ServeMux // of the metrics' port
	api      http.Handler   // for those who have a role
	maxBody  int64          // of requests to api
	probes   probes
	jobs     *jobs
	life     context.Context // ends with the server, and what is sent without an end
	end      context.CancelFunc
	path     string // of the socket
	running  sync.WaitGroup

	groups    atomic.Pointer[map[uint32]control.Role]
	entry     atomic.Pointer[entry] // of the control port
	admission *admission            // of those over TCP

	mu struct {
		sync.Mutex
		socket           *http.Server
		metrics, control port
		leaving          map[*http.Server]struct{} // whose ports are served no more
		stopped          bool
	}
}

// Serve opens the socket, and the TCP ports that there are to be, and serves until Stop.
// An error wraps ErrInUse if another process serves the socket.
func Serve(c Config) (*Server, error) {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Trail == nil {
		c.Trail = NewTrail(c.Logger)
	}
	metrics := scrape(c.Source)
	s := &Server{log: c.Logger, trail: c.Trail, refusals: c.Refusals, answers: answers{now: time.Now}, pages: metricsOnly(metrics, probes{c.Vitals}), probes: probes{c.Vitals}, maxBody: applyBody(c.MaxFile)}
	s.journal = loglimit.New(c.Logger, time.Now)
	s.admission, s.mu.leaving = newAdmission(), map[*http.Server]struct{}{}
	s.life, s.end = context.WithCancel(context.Background())
	s.groups.Store(&map[uint32]control.Role{})
	s.mu.metrics.key, s.mu.control.key = "metrics (server.metrics)", "control API (server.control.listen)"
	s.mu.metrics.leave, s.mu.control.leave = s.drain, s.drain
	s.jobs = newJobs(time.Now)
	api := newAPI(c, metrics, &feed{stream: c.Events, seats: newSeats(maxStreams, maxStreams/4)}, &async{jobs: s.jobs, log: c.Logger, trail: s.trail, journal: s.journal}, newTurns())
	s.api = s.paged(sameOrigin(s.identified(audited(s.admitted(straight(api)), s.trail, s.journal))))
	socket, err := listen(c.Socket)
	if err != nil {
		return nil, err
	}
	s.path = c.Socket
	if err := errors.Join(s.SetAccess(c.Access), s.MoveMetrics(c.Metrics)); err != nil {
		s.mu.Lock()
		s.mu.metrics.close()
		s.mu.control.close()
		s.mu.Unlock()
		s.running.Wait()
		return nil, errors.Join(err, socket.Close())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.socket = s.serve(socket, nil, s.api, s.maxBody)
	return s, nil
}

// MetricsAddr returns the TCP address of the metrics; nil: none.
func (s *Server) MetricsAddr() net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.metrics.at
}

// ControlAddr returns the TCP address of the API; nil: none.
func (s *Server) ControlAddr() net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.control.at
}

// errStopped is for what comes too late.
var errStopped = errors.New("the control API has ended")

// MoveMetrics serves the metrics elsewhere or to others, as Config.Metrics. After an
// error they are where they were, unless it says that they are not.
func (s *Server) MoveMetrics(p MetricsPort) error {
	g, err := newGuard(p, s)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.stopped {
		return errStopped
	}
	over := g.over
	if p.Certificate == "" {
		over = nil
	}
	return s.mu.metrics.move(p.Address, func(l net.Listener) *http.Server { return s.serve(l, over, g.only(s.pages), maxBody) })
}

// SetAccess lets others ask than before, as Config.Access. After an error nothing has
// changed, unless it says so. Who is asking over TCP gets an answer, also where nothing is
// served any more.
func (s *Server) SetAccess(a Access) error {
	e, err := newEntry(a.Port, s)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.stopped {
		return errStopped
	}
	if err := openTo(s.path, a.Groups); err != nil {
		return err
	}
	before := s.entry.Swap(e) // it judges all who come, at whichever address
	if a.Port.Address != s.mu.control.to {
		err = s.mu.control.move(a.Port.Address, func(l net.Listener) *http.Server { return s.serve(l, s.over, s.api, s.maxBody) })
		if err != nil {
			s.entry.Store(before)
			return errors.Join(err, openTo(s.path, *s.groups.Load()))
		}
		if at := s.mu.control.at; at != nil {
			s.log.Info("control API over TLS", "address", at.String())
		}
	}
	s.groups.Store(&a.Groups)
	s.admission.knows(a.Known)
	return nil
}

// serve answers at a listener, which over puts TLS before; nil: nothing does.
func (s *Server) serve(l net.Listener, over func(net.Listener) net.Listener, mux http.Handler, body int64) *http.Server {
	leaving, leave := context.WithCancel(s.life)
	h := &http.Server{
		Handler:           s.answers.first(bounds(mux, body)),
		ReadHeaderTimeout: readTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeader,
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return withConn(context.WithValue(ctx, leavingKey, leaving), conn)
		},
		ErrorLog: slog.NewLogLogger(s.journal.Logger("", false).Handler(), slog.LevelWarn),
	}
	h.RegisterOnShutdown(leave)
	var limited net.Listener = &crowd{Listener: l, refusals: s.refusals, groups: func() map[uint32]control.Role { return *s.groups.Load() }, admission: s.admission, handshakes: over != nil}
	if over != nil {
		limited = over(limited)
	}
	s.running.Go(func() {
		if err := h.Serve(limited); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("control API ended", "address", l.Addr().String(), "err", err)
		}
	})
	return h
}

// drainTime is how long those may take whose port is served no more: as long as any.
const drainTime = writeTimeout

// drain lets a server serve nobody else, and those who are asking to the end. The caller
// has s.mu.
func (s *Server) drain(h *http.Server) {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	_ = h.Shutdown(now) // it listens no more, and is not waited for
	s.mu.leaving[h] = struct{}{}
	s.running.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), drainTime)
		defer cancel()
		if h.Shutdown(ctx) != nil {
			h.Close()
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.mu.leaving, h)
	})
}

// Stop ends the API and removes the socket. Requests and jobs under way are finished
// first, until ctx ends; requests are then broken off, and jobs left alone. A nil Server has nothing to
// stop.
func (s *Server) Stop(ctx context.Context) {
	if s == nil {
		return
	}
	s.end()
	s.mu.Lock()
	s.mu.stopped = true
	servers := []*http.Server{s.mu.socket}
	servers = slices.AppendSeq(servers, maps.Keys(s.mu.leaving))
	for _, p := range []*port{&s.mu.metrics, &s.mu.control} {
		if p.server != nil {
			servers = append(servers, p.server)
		}
	}
	s.mu.Unlock()
	for _, h := range servers {
		if err := h.Shutdown(ctx); err != nil {
			s.log.Warn("control API: requests were broken off", "err", err)
			h.Close()
		}
	}
	s.running.Wait()
	select {
	case <-s.jobs.close():
	case <-ctx.Done():
		s.log.Warn("control API: jobs have not ended", "err", ctx.Err())
	}
}

// bounds limits the body of every request.
func bounds(next http.Handler, body int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, body)
		next.ServeHTTP(w, r)
	})
}
