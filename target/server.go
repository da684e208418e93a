package target

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"lunar/internal/evloop"
	"lunar/internal/latency"
	"lunar/internal/loglimit"
	"lunar/internal/numa"
	"lunar/internal/refusals"
	"lunar/target/login"
	"lunar/target/scsi"
)

// Server is an iSCSI target node server: event threads, target nodes and the
// portals that lead to them. Its methods are for control goroutines.
type Server struct {
	config  Config
	log     *slog.Logger
	workers map[int]*evloop.Workers // by node
	threads []*thread
	nodeOf  func(local netip.Addr) int // NUMA node of the network device of an address; below 0: unknown
	removal sync.WaitGroup             // logical units that are being closed
	running sync.WaitGroup             // loops, logins, and who waits for sessions to end
	onStop  []func()
	qos     *qos
	latency *latency.Book

	retained atomic.Int64 // bytes that lost connections keep (retain.go)

	directory directory
	masked    atomic.Pointer[masked]
	others    atomic.Pointer[map[string][]Elsewhere] // by target; nil: none
	remotes   remotes
	exchanges login.Exchanges

	settings atomic.Pointer[Settings] // of sessions that log in from now on

	refusals *refusals.Counters
	journal  *loglimit.Journal // the log for what peers bring about
	closing  chan struct{}     // closed when no connection is accepted any more

	failures *failures // logins that failed lately

	mu struct {
		sync.Mutex
		closing   bool
		targets   map[string]*Target
		order     []*Target // as they were added
		groups    map[uint16]*PortalGroup
		homes     map[*scsi.LogicalUnit][]*thread // the logical units' groups of event threads
		nextHome  int
		sessions  map[uint16]*Session           // by TSIH
		past      map[*scsi.LogicalUnit]Traffic // of sessions that have ended
		lastTSIH  uint16
		admission admission
		seenLess  chan struct{} // closed, and replaced, when a session has ended or sees less
		drains    []Drain
		removing  map[*scsi.LogicalUnit]bool // is being closed
		used      map[*scsi.LogicalUnit]int  // by commands for another one
		traced    map[*Session]bool          // whose PDUs are
	}
}

// NewServer makes a server and starts its event threads. It serves nothing
// until targets are added and Listen opens portals.
func NewServer(config Config) (*Server, error) {
	config, at, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Server{config: config, log: config.Logger, workers: make(map[int]*evloop.Workers), nodeOf: numa.NewNICs().Node, refusals: config.Refusals, failures: newFailures(), closing: make(chan struct{})}
	s.mu.targets = make(map[string]*Target)
	s.mu.groups = make(map[uint16]*PortalGroup)
	s.mu.homes = make(map[*scsi.LogicalUnit][]*thread)
	s.mu.sessions = make(map[uint16]*Session)
	s.mu.traced = make(map[*Session]bool)
	s.mu.past = make(map[*scsi.LogicalUnit]Traffic)
	s.mu.admission = newAdmission(config.Guests, config.Limits.Sessions)
	s.mu.removing = make(map[*scsi.LogicalUnit]bool)
	s.mu.used = make(map[*scsi.LogicalUnit]int)
	s.mu.seenLess = make(chan struct{})
	s.Reconfigure(config.Settings())
	s.journal = loglimit.New(s.log, time.Now)
	config.QoS.Gate.Threads, config.QoS.Gate.Nodes = config.Threads, config.QoS.Coordinator.Above
	s.qos = newQoS(config.QoS, config.Threads, s.LogicalUnits)
	for i := range config.Threads {
		th, err := newThread(s.threadConfig(i, at[i%len(at)]))
		if err != nil {
			s.stopThreads()
			return nil, err
		}
		th.refused.all = s.refusals
		th.gate, th.qos = newGate(th.loop, i, config.QoS.Gate), s.qos
		th.gate.applied, th.gate.classes = th.classify, th.classes
		s.qos.gates = append(s.qos.gates, th.gate)
		th.loop.SetPoll(config.Poll)
		s.threads = append(s.threads, th)
		s.running.Go(th.loop.Run)
	}
	s.qos.start()
	s.latency = latency.NewBook(maxTimed, time.Now())
	s.running.Go(s.turnLatencies)
	s.running.Go(func() { s.journal.TellUntil(s.closing) })
	return s, nil
}

// turnLatencies begins intervals of latencies until the portals are closed.
func (s *Server) turnLatencies() {
	tick := time.NewTicker(latencyInterval)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			s.TurnLatency(now)
		case <-s.closing:
			return
		}
	}
}

// Latency tells how long commands took.
func (s *Server) Latency() latency.Report { return s.latency.Report(s.tables()) }

// TurnLatency begins a new interval, and forgets the volumes that are gone.
func (s *Server) TurnLatency(now time.Time) {
	s.latency.Turn(s.tables(), now)
	served := make(map[string]bool)
	for _, lu := range s.LogicalUnits() {
		served[lu.Name()] = true
	}
	s.latency.Forget(func(volume string) bool { return served[volume] })
}

func (s *Server) tables() (all []*latency.Table) {
	for _, th := range s.threads {
		all = append(all, th.latency.Table)
	}
	return all
}

// Loops returns the event threads' loops. They end after the last lane of every
// logical unit's store is closed.
func (s *Server) Loops() []*evloop.Loop {
	loops := make([]*evloop.Loop, len(s.threads))
	for i, th := range s.threads {
		loops[i] = th.loop
	}
	return loops
}

func (s *Server) threadConfig(i int, at place) evloop.Config {
	c := evloop.Config{
		Name: fmt.Sprintf("event%d", i), CPU: at.cpu, Node: at.node, Topology: s.config.Topology,
		Buffers: s.config.Buffers, Huge: s.config.Huge, Workers: s.workersOf(at.node), Logger: s.log,
		RealTime: s.config.RealTime,
	}
	if !s.config.NoRing {
		c.RingEntries = 256
	}
	return c
}

// OnStop makes f be called by Shutdown when no session is left, before the event
// threads and their memory go. It is for the time before portals are open.
func (s *Server) OnStop(f func()) { s.onStop = append(s.onStop, f) }

// AddLogicalUnit gives a logical unit its group of event threads: the next n
// of the server's threads in turn.
func (s *Server) AddLogicalUnit(lu *scsi.LogicalUnit, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.homes[lu] == nil {
		s.setGroup(lu, n)
	}
}

// SpreadLogicalUnit makes a logical unit's group of event threads n threads large.
// Sessions stay where they are; those that begin later, and those that move to
// their busiest logical unit, follow.
func (s *Server) SpreadLogicalUnit(lu *scsi.LogicalUnit, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.homes[lu] != nil {
		s.setGroup(lu, n)
	}
}

// setGroup gives a logical unit n threads, of which those that it has stay. The
// caller holds mu.
func (s *Server) setGroup(lu *scsi.LogicalUnit, n int) {
	n = min(max(n, 1), len(s.threads))
	group := slices.Clone(s.mu.homes[lu][:min(n, len(s.mu.homes[lu]))])
	for len(group) < n {
		th := s.threads[s.mu.nextHome%len(s.threads)]
		s.mu.nextHome++
		if !slices.Contains(group, th) {
			group = append(group, th)
		}
	}
	s.mu.homes[lu] = group
}

// AddTarget makes a target node known; its logical units that were not added
// before get one event thread each.
func (s *Server) AddTarget(config TargetConfig) (*Target, error) {
	config.Name = strings.ToLower(config.Name)
	s.addUnits(&config)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.targets[config.Name] != nil {
		return nil, fmt.Errorf("target %s exists already", config.Name)
	}
	t := &Target{name: config.Name}
	t.config.Store(&config)
	s.mu.targets[config.Name] = t
	s.mu.order = append(s.mu.order, t)
	s.directory.changes.Add(1)
	return t, nil
}

// groupOf returns the event threads of a logical unit.
func (s *Server) groupOf(lu *scsi.LogicalUnit) []*thread {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.homes[lu]
}

// Homes returns the names of the event threads of each logical unit, by its name.
func (s *Server) Homes() map[string][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string][]string{}
	for lu, group := range s.mu.homes {
		for _, th := range group {
			all[lu.Name()] = append(all[lu.Name()], th.loop.Name())
		}
	}
	return all
}

// homeFor returns the thread that a new session starts on.
func (s *Server) homeFor(rule *AccessRule, from origin) *thread {
	group := s.threads
	if rule != nil && len(rule.LUNs) > 0 {
		if own := s.groupOf(rule.LUNs[0].LU); len(own) > 0 { // else it is being removed
			group = own
		}
	}
	return s.nearest(group, from)
}

// Shutdown closes the portals, asks the initiators to log out, ends their
// sessions when they have, or when ctx ends, and makes everything stable. The
// logical units' stores are closed.
func (s *Server) Shutdown(ctx context.Context) error {
	s.closePortals()
	within := 5 * time.Second
	if d, ok := ctx.Deadline(); ok {
		within = min(within, time.Until(d))
	}
	for _, session := range s.sessions() {
		session.state.post(func() { session.state.requestLogout(within, errShutdown) })
	}
	asked, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	s.awaitSessions(asked)
	for _, session := range s.sessions() {
		session.state.post(func() { session.state.drop(errShutdown) })
	}
	final, cancelFinal := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancelFinal()
	left := s.awaitSessions(final)
	return s.retire(left)
}

// awaitSessions waits until all sessions have ended.
func (s *Server) awaitSessions(ctx context.Context) error {
	for _, session := range s.sessions() {
		select {
		case <-session.ended:
		case <-ctx.Done():
			return fmt.Errorf("%d sessions have not ended: %w", len(s.sessions()), ctx.Err())
		}
	}
	return nil
}

// LogicalUnits returns all that were added and are not being removed, in no
// order.
func (s *Server) LogicalUnits() []*scsi.LogicalUnit {
	s.mu.Lock()
	defer s.mu.Unlock()
	var lus []*scsi.LogicalUnit
	for lu := range s.mu.homes {
		if !s.mu.removing[lu] {
			lus = append(lus, lu)
		}
	}
	return lus
}

func (s *Server) stopThreads() {
	for _, f := range s.onStop {
		f()
	}
	s.qos.end()
	for _, th := range s.threads {
		closed := make(chan struct{})
		th.loop.Post(evloop.Func(func() { th.close(s.log); close(closed) }))
		<-closed
	}
	for _, w := range s.workers {
		w.Close()
	}
	for _, th := range s.threads {
		th.loop.Stop()
	}
	s.running.Wait()
}

// Settings returns those in force.
func (s *Server) Settings() Settings { return *s.settings.Load() }

// Reconfigure puts settings into force for connections that come from now on; zero
// values get the defaults of a Config. Logins that have begun are told to come again.
// Sessions that would not be admitted with the new DiscoveryAuth and Owners are asked to
// log out: dismissed is how many.
func (s *Server) Reconfigure(n Settings) (dismissed int) {
	n.setDefaults(s.config.Buffers)
	s.mu.Lock()
	before := s.settings.Load()
	if before != nil && reflect.DeepEqual(*before, n) {
		s.mu.Unlock()
		return 0
	}
	s.settings.Store(&n)
	s.mu.Unlock()
	return s.revokeLUNs(slices.DeleteFunc(s.sessions(), s.keeps))
}

// QueueDepth is how many commands a session that logs in now may have under way.
func (s *Server) QueueDepth() int { return s.settings.Load().Limits.QueueDepth }

// Retained is how many bytes of data the server keeps for lost connections.
func (s *Server) Retained() int64 { return s.retained.Load() }

// inForce implements node.
func (s *Server) inForce() *Settings { return s.settings.Load() }

// logger implements node.
func (s *Server) logger() *slog.Logger { return s.log }

// lines implements node.
func (s *Server) lines() *loglimit.Journal { return s.journal }

// refuse implements node.
func (s *Server) refuse(r refusals.Reason) { s.refusals.Add(r) }

// retention implements node.
func (s *Server) retention() *atomic.Int64 { return &s.retained }
