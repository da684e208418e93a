package target

import (
	"log/slog"
	"net/netip"
	"time"

	"lunar/internal/arena"
	"lunar/internal/evloop"
	"lunar/internal/numa"
	"lunar/internal/places"
	"lunar/internal/refusals"
	"lunar/target/login"
)

// Config is what a Server is built from. Zero values get the defaults that
// withDefaults names.
type Config struct {
	Logger *slog.Logger

	Topology numa.Topology // real, or an override; zero: that of the machine

	Threads  int         // event threads, dealt over the nodes; default one per CPU of Topology
	CPUs     []int       // CPUs to pin them to, within a node in this order; default all of Topology
	Buffers  int         // bytes of data buffers per event thread
	Huge     arena.Huge  // pages of the data buffers
	NoRing   bool        // do without io_uring
	RealTime bool        // event threads are in a real-time class, where the process may
	Poll     evloop.Poll // how event threads wait for work; the zero value: they sleep
	Workers  int         // goroutines for calls that block, shared out among the nodes

	Offer         login.Offer   // what the target negotiates
	DiscoveryAuth login.Auth    // who may discover
	DiscoverAll   bool          // who has proven nothing learns the portals of all groups, not only of its own
	Owners        *Owners       // whose initiator names are; nil: they are free
	NOPInterval   time.Duration // silence after which the initiator is asked whether it lives; negative: never
	NOPTimeout    time.Duration // how long it may take to answer
	FlushTime     time.Duration // how long Shutdown waits until all stores are stable; default 10 s
	LogoutTime    time.Duration // how long an initiator may take to log out when it is asked to; default 10 s
	DrainTime     time.Duration // how long commands of a logical unit that is being removed may run; default 10 s
	Limits        Limits
	QoS           QoS
	Refusals      *refusals.Counters   // what is refused; nil: it is not counted
	Guests        map[places.Guest]int // how many sessions they had before the start; places are reserved for them
}

// Limits bound what peers can make the server hold.
type Limits struct {
	LoginConnections int           // connections that have not finished their login
	LoginTimeout     time.Duration // from accept to full feature phase
	Sessions         int           // sessions of all targets, besides discovery sessions, of which there are as many as connections in login

	// Shares: what there is beyond them may be taken away for others when all is
	// taken. They hold for addresses and for users that have authenticated, and for
	// networks (/24, for IPv6 /48) of those that have not.
	LoginsPerAddress, LoginsPerNetwork     int            // of connections in login and of discovery sessions; default a quarter and a half
	SessionsPerAddress, SessionsPerNetwork int            // default a half and three quarters
	Known                                  []netip.Prefix // networks that come before all others

	QueueDepth     int // commands of one session at a time (the command window)
	Recovery       int // the highest ErrorRecoveryLevel that is agreed to: 0 to 2
	MaxConnections int // connections of one session (RFC 7143 section 13.2)
	SessionMemory  int // bytes of data buffers that one session may hold
}

// TargetConfig describes one target node.
type TargetConfig struct {
	Name         string   // iSCSI name
	Alias        string   // TargetAlias, may be empty
	PortalGroups []uint16 // tags of the portal groups that it is reached through
	Access       []AccessRule
	Redirect     string // host:port that logins are sent to for the time being; empty: none
	Moved        string // host:port that logins are sent to for good; empty: none
}

// PortalGroup is a set of addresses that share a tag (RFC 7143 section 4.1).
type PortalGroup struct {
	Tag       uint16
	Portals   []Portal // not open yet; the group takes them over
	Advertise []string // host:port that discovery tells instead of portals over TCP, for a target behind NAT
	Redirect  string   // host:port that logins are sent to for the time being; empty: none
}

// Elsewhere is a portal group of another server, which has a target of the same name with
// the same logical units, as far as they are shared (scsi.LUConfig.Shared).
type Elsewhere struct {
	Tag       uint16   // that no group of this server has
	Beside    uint16   // tag of this server's group whose initiators reach it, too; 0: none
	Addresses []string // host:port of its portals over TCP
}

const (
	defaultBuffers       = 64 << 20
	defaultQueueDepth    = 128
	defaultSessionMemory = 16 << 20
)
