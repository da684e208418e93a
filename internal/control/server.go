package control

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

// Source is the server that is controlled. Its methods may be called by any
// number of goroutines.
type Source interface {
	// Status returns what there is to tell now. It must not block for long.
	Status() Status
	// Rules returns what the token scheduler goes by.
	Rules() QoS
	// ChangeRules changes the rules in force, from which nothing else changes
	// them meanwhile, and returns what is then in force. The set that change
	// gets is its own. If change fails, or the error is a *Refusal, nothing
	// was changed.
	ChangeRules(change func(*RuleSet) error) (QoS, error)
	// Explain tells what the scheduler does for an initiator; an empty
	// name is all that have sessions.
	Explain(initiator string) Explanation
	// Apply puts the configuration of a file's text into force, or tells what
	// that would change. If there is an error, which may be a *Refusal, nothing
	// was changed.
	Apply(File) (Applied, error)
	// Running returns the configuration that is running, as YAML without
	// secrets.
	Running() (string, error)
	// Kick asks initiators to log out, and disconnects who does not; it
	// returns how many sessions are to end.
	Kick(Kick) (int, error)
	// Drain keeps initiators away from a portal, or no longer.
	Drain(Drain) (Drained, error)
	// Rescan makes a volume as large as its file or device is now.
	Rescan(volume string) (Rescanned, error)
	// Detach gives up a volume that was removed and whose data cannot be written, or
	// what the cache keeps of one. If there is an error, which may be a *Refusal,
	// nothing was given up.
	Detach(volume string, d Detach) (Detached, error)
	// Reservations tells what is reserved of all volumes.
	Reservations() Reservations
	// ClearReservations ends that for the volume of a name, and returns what there
	// was. If there is an error, which may be a *Refusal, nothing was changed.
	ClearReservations(volume string) (VolumeReservations, error)
	// ALUA tells how the volumes are reached through each portal group.
	ALUA() ALUA
	// ChangeAccess changes that for the portal group of a name. If there is an
	// error, which may be a *Refusal, nothing was changed.
	ChangeAccess(group string, change AccessChange) (ALUA, error)
}

// Config says what a Server listens on and tells.
type Config struct {
	Socket  string // path of the unix socket
	Metrics MetricsPort
	Version string // of the daemon, for the API's description
	Source  Source
	MaxFile int64        // longest text of a File, in bytes; longer ones may not reach Source
	Logger  *slog.Logger // nil is slog.Default
	// Refusals counts requests for metrics without their token, and clients that lose
	// their place; nil: nobody does.
	Refusals *refusals.Counters
}

// Limits of all clients together: the API is for a few tools of one machine.
const (
	maxConnections = 256
	maxHeader      = 16 << 10 // bytes
	maxBody        = 1 << 20  // bytes of every request but one with a File
	readTimeout    = 10 * time.Second
	writeTimeout   = 2 * time.Minute
	idleTimeout    = time.Minute
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
