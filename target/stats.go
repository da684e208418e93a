package target

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"time"

	"lunar/internal/evloop"
	"lunar/target/login"
	"lunar/target/pdu"
	"lunar/target/scsi"
)

// SessionStats describe a session in full feature phase. What the initiator has
// chosen, like its name, may hold any characters.
type SessionStats struct {
	TSIH          uint16
	Initiator     string // iSCSI name
	Alias         string
	Proof         login.Proof // who it has proven to be
	ISID          string      // hexadecimal
	Target        string      // iSCSI name; empty: a discovery session
	Local, Remote netip.AddrPort
	Opened        time.Time
	Transport     string // "tcp" or "iser"
	Thread        string // that serves it now
	Window        int    // commands that it may have in flight
	InFlight      int    // SCSI commands
	LUNs          []LUNStats
	Connections   []ConnectionStats // in the order in which they came
}

// LUNStats describe a LUN of a session.
type LUNStats struct {
	LUNMapping
	Traffic Traffic
}

// Sessions returns all sessions, by TSIH.
func (s *Server) Sessions() []SessionStats {
	var out []SessionStats
	for _, n := range s.sessions() {
		out = append(out, n.stats())
	}
	slices.SortFunc(out, func(a, b SessionStats) int { return cmp.Compare(a.TSIH, b.TSIH) })
	return out
}

func (n *Session) stats() SessionStats {
	s := SessionStats{
		TSIH: n.tsih, Initiator: n.initiator.Name, Proof: n.initiator.Proof, Alias: n.alias, ISID: n.isid.String(),
		Local: n.local, Remote: n.remote, Opened: n.state.traffic.opened, Transport: "tcp", Thread: n.state.owner.name(),
		Window: n.settings.Limits.QueueDepth, InFlight: int(n.state.traffic.inFlight.Load()),
	}
	if n.assisted {
		s.Transport = "iser"
	}
	if n.target != nil {
		s.Target = n.target.Name()
	}
	var all Traffic
	for _, l := range n.view.Load().luns {
		sum := l.traffic.sum()
		all = all.plus(sum)
		if !l.unmapped {
			s.LUNs = append(s.LUNs, LUNStats{l.LUNMapping, sum})
		}
	}
	for _, c := range *n.state.shown.Load() {
		c.Traffic = c.carried.sum()
		if !n.state.shared { // the only one there can be is not counted apart
			c.Traffic = all
		}
		s.Connections = append(s.Connections, c.ConnectionStats)
	}
	return s
}

// name returns the name of the thread that the connection belongs to.
func (o *owner) name() string { return o.now().loop.Name() }

// Traffic returns what all sessions, past and present, have done with each of
// the server's logical units.
func (s *Server) Traffic() map[*scsi.LogicalUnit]Traffic {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := maps.Clone(s.mu.past)
	for lu := range s.mu.homes {
		sum[lu] = s.mu.past[lu]
	}
	for _, n := range s.mu.sessions {
		n.addTraffic(sum)
	}
	return sum
}

func (n *Session) addTraffic(to map[*scsi.LogicalUnit]Traffic) {
	for _, l := range n.view.Load().luns {
		to[l.LU] = to[l.LU].plus(l.traffic.sum())
	}
}

// ThreadStats describe an event thread.
type ThreadStats struct {
	evloop.Stats
	Name        string
	CPU, Node   int // -1: none
	Connections int

	Refused map[string]uint64 // by refusals.Reason
}

// Threads returns the event threads.
func (s *Server) Threads() []ThreadStats {
	out := make([]ThreadStats, 0, len(s.threads))
	for _, th := range s.threads {
		out = append(out, ThreadStats{
			Stats: th.loop.Stats(), Name: th.loop.Name(), CPU: th.loop.CPU(), Node: th.loop.Node(), Connections: int(th.load.Load()),
			Refused: th.refused.counts(),
		})
	}
	return out
}

// Incidents returns what the event threads have told of errors.
func (s *Server) Incidents() Incidents {
	sum := Incidents{Sense: make(map[SenseKind]uint64), Functions: make(map[pdu.TaskManagementFunction]uint64)}
	for _, th := range s.threads {
		th.incidents.addTo(&sum)
	}
	return sum
}

// TargetStats describe a target node.
type TargetStats struct {
	Name, Alias string
	Portals     []string            // host:port that it listens on, with "iser:" in front if that is over RDMA
	Units       []*scsi.LogicalUnit // that some rule shows, each once
	Sessions    int
}

// Targets returns the target nodes, in the order in which they were added.
func (s *Server) Targets() []TargetStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]TargetStats, 0, len(s.mu.order))
	for _, t := range s.mu.order {
		config := t.config.Load()
		stats := TargetStats{Name: config.Name, Alias: config.Alias, Units: config.units()}
		for _, tag := range config.PortalGroups {
			stats.Portals = append(stats.Portals, s.mu.groups[tag].portals()...)
		}
		for _, n := range s.mu.sessions {
			if n.target == t {
				stats.Sessions++
			}
		}
		out = append(out, stats)
	}
	return out
}

// portals returns the addresses of the group's sockets; a nil group has none.
func (g *PortalGroup) portals() (addrs []string) {
	if g == nil {
		return nil
	}
	for _, p := range g.Portals {
		addr := p.Addr().String()
		if p.Assisted() {
			addr = "iser:" + addr
		}
		addrs = append(addrs, addr)
	}
	return addrs
}
