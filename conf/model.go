package conf

import (
	"fmt"
	"net/netip"
	"time"
)

// Config is a whole configuration in its normal form: the slices of named
// objects are sorted by name and every default is filled in.
type Config struct {
	Server       Server
	Log          Log
	Cache        Cache
	QoS          QoS
	Discovery    Discovery
	PortalGroups []PortalGroup
	AuthGroups   []AuthGroup
	Ceph         []CephCluster
	Cluster      *Cluster // nil: the server is alone
	Volumes      []Volume
	Targets      []Target
}

// Server sizes the process.
type Server struct {
	Threads            int           // event threads; 0 lets the server choose one per CPU
	CPUs               []int         // CPUs that event threads are pinned to, ascending; empty means every CPU that the process may use
	BuffersPerThread   Size          // off-heap data buffers of each event thread
	RealTime           bool          // event threads are in a real-time class of the kernel
	Poll               string        // one of the Poll words
	BusyPoll           time.Duration // with PollAdaptive: how long an event thread looks for work before it sleeps; 0 never
	PollBudget         int           // with PollAdaptive: percent of its time that may go into looks that find no work
	Congestion         string        // TCP's congestion control by its name in the kernel, or one of those below
	Nodes              Nodes
	Metrics            netip.AddrPort // where counters can be read over HTTP; the zero value: only through the control socket
	MetricsToken       string         // file whose first line readers of Metrics have to send; empty: none
	MetricsCertificate string         // file of the certificate chain with which Metrics are served over TLS; empty: in clear
	MetricsKey         string         // file of its private key
	Control            Control        // who may ask and change the running server
	Sandbox            string         // one of the Sandbox words
	CoreDumps          bool           // a crash may leave one
	MemoryLimit        Size           // that Go's garbage collector keeps to (GOMEMLIMIT); 0 takes what is left, NoMemoryLimit
	ISER               ISER
	Limits             Limits
	NOP                NOP
}

// Control says who besides root and the server's user may ask and change the running
// server, and where. Roles are those of the package control: who may operate may read,
// and who is admin may do everything.
type Control struct {
	ReadGroup, OperateGroup, AdminGroup string // groups of the system, by name or number; empty: none

	Listen         netip.AddrPort // where the API is served over TLS; the zero value: only at the control socket
	Certificate    string         // file of the certificate chain
	Key            string         // file of its private key
	Tokens         string         // file of tokens, hashed; empty: none
	ClientCA       string         // file of the certificates by which those of clients are judged; empty: clients need none
	ReadClients    []string       // names in certificates of clients, each in one list
	OperateClients []string
	AdminClients   []string
	Page           bool // whether a web page is served beside the API

	Audit string // file that each change gets a line in; empty: only the log
}

// Server.Congestion that is no name of the kernel's.
const (
	AutoCongestion   = "auto"   // chosen for each connection
	SystemCongestion = "system" // the system's
)

// What becomes of system calls that a server does not make.
const (
	SandboxEnforce = "enforce" // they fail
	SandboxLog     = "log"     // the kernel logs them
	SandboxOff     = "off"
)

// NoMemoryLimit as Server.MemoryLimit bounds the heap by nothing.
const NoMemoryLimit Size = -1

// How event threads wait for work.
const (
	PollOff      = "off"      // asleep
	PollAdaptive = "adaptive" // looking for it while that pays
	PollAlways   = "always"   // looking for it, with all of a CPU
)

// Nodes overrides the machine's NUMA nodes. The zero value takes them as they
// are; at most one of the fields is set.
type Nodes struct {
	Count int     // equal nodes that the CPUs are dealt out to
	CPUs  [][]int // of each node, ascending, none twice
}

// Limits bounds what initiators can make the server hold.
type Limits struct {
	ConnectionsInLogin int            // connections that have not finished their login, over all portals
	LoginTimeout       time.Duration  // from accept to the end of the login phase
	Sessions           int            // sessions over all targets
	LoginsPerAddress   int            // of ConnectionsInLogin, what an address has for itself; 0: a quarter
	LoginsPerNetwork   int            // the same of a network of addresses; 0: half
	SessionsPerAddress int            // of Sessions, what an address or a user has for itself; 0: half
	SessionsPerNetwork int            // the same of a network of addresses; 0: three quarters
	KnownNetworks      []netip.Prefix // that come before all others
	QueueDepth         int            // commands of one session (its command window, RFC 7143 section 4.2.2.1)
	ErrorRecoveryLevel int            // the highest that is agreed to (RFC 7143 section 13.20)
	MaxConnections     int            // connections of one session (MaxConnections, RFC 7143 section 13.2)
	MemoryPerSession   Size           // data buffers that one session may hold
}

// NOP detects dead peers: after Interval without traffic a NOP-In asks for an
// answer, and after Timeout without one the connection is dropped.
type NOP struct {
	Interval time.Duration // 0 sends none
	Timeout  time.Duration
}

// Log says what is logged and how.
type Log struct {
	Level  string // debug, info, warn or error
	Format string // text or json
}

// Discovery is the rule for discovery sessions.
type Discovery struct {
	AuthGroup string // name of an AuthGroup; empty admits every initiator without authentication
	Portals   string // AllPortals; empty: who proves nothing is told those of the portal group that it asks by
}

// AllPortals tells everyone of all portal groups of a target.
const AllPortals = "all"

// ownPortals is the other word, stored as "".
const ownPortals = "own"

// PortalGroup is a set of portals that share a tag (RFC 7143 section 4.1.2).
type PortalGroup struct {
	Name       string
	Tag        uint16
	ALUA       ALUA
	Listen     []netip.AddrPort // ascending; [::] is IPv6 only, so that dual stack is two entries
	ListenISER []ISERPortal     // in their order
	Redirect   string           // host:port that logins are sent to for the time being; empty: none
}

// ISERPortal is where iSCSI over RDMA is served: at an address, or at all addresses
// of a network interface with an RDMA device.
type ISERPortal struct {
	Addr      netip.AddrPort // its address is the zero value if Interface is given
	Interface string
}

// String is how a configuration names it.
func (p ISERPortal) String() string {
	if p.Interface == "" {
		return p.Addr.String()
	}
	return fmt.Sprintf("%s:%d", p.Interface, p.Addr.Port())
}

// ISER is how iSCSI over RDMA is done.
type ISER struct {
	ImmediateData      Size // longest data that a write may bring along with its command; 0: none
	RemoteInvalidation bool // responses spare the initiator invalidating its keys, where it agrees
}

// ALUA is the asymmetric access of all volumes through a portal group: what
// initiators with several paths are told of it (SPC-4 clause 5.15).
type ALUA struct {
	State     string // optimized, non-optimized, standby, unavailable or offline
	Preferred bool   // among groups of the same state
	Explicit  bool   // initiators may change states (SET TARGET PORT GROUPS); one group that says so is enough
}

// AuthGroup says who an initiator must be.
type AuthGroup struct {
	Name       string
	CHAP       []Credential // accepted from initiators; empty asks for no authentication
	Mutual     *Credential  // what the target answers when an initiator asks; nil refuses to
	Algorithms []string     // CHAP_A values in order of preference: sha3-256, sha256, sha1, md5
	Match      Match
}

// Credential is a CHAP name and its secret.
type Credential struct {
	User       string
	Secret     Secret
	Initiators []string // of AuthGroup.CHAP: names, or globs, that are the user's alone; empty: any that is nobody's
}

// Match selects initiators by name and by source address: both have to match.
// An empty list matches everyone.
type Match struct {
	Initiators []string       // lower-case iSCSI names, or globs with * and ?
	Networks   []netip.Prefix // masked
}

// some reports whether the match leaves anyone out.
func (m *Match) some() bool { return len(m.Initiators) > 0 || len(m.Networks) > 0 }

// VolumeType names the backing store of a volume.
type VolumeType string

// The backing stores.
const (
	FileVolume  VolumeType = "file"  // a file, created sparse when a size is given
	BlockVolume VolumeType = "block" // a block device
	RAMVolume   VolumeType = "ram"   // memory that is gone when the server ends
	NullVolume  VolumeType = "null"  // reads zeroes, forgets writes
	GotgtVolume VolumeType = "gotgt" // what a Driver serves

	MirrorVolume VolumeType = "mirror" // two files or devices with the same data, which take turns
	RBDVolume    VolumeType = "rbd"    // an image of a Ceph cluster
)

// CephCluster is a Ceph cluster, and as whom it is used.
type CephCluster struct {
	Name        string
	Config      string // path of the cluster's own configuration file
	User        string // without "client."
	KeyringFile string // has the user's key; empty: where Config says
}

// Driver names one of gotgt's backing stores.
type Driver string

// The drivers that the server has.
const (
	FileDriver Driver = "file" // a file that is there
	NullDriver Driver = "null" // reads zeroes, forgets writes
)

// WritePolicy says when a write is acknowledged.
type WritePolicy string

// The write policies.
const (
	WriteThrough WritePolicy = "through" // when the kernel has the data; a flush makes it stable (WCE=1)
	WriteBack    WritePolicy = "back"    // when the block cache has the data; a flush makes it stable (WCE=1)
	WriteSync    WritePolicy = "sync"    // when the data is on stable media (WCE=0)
)

// Volume is what a logical unit is made of.
type Volume struct {
	Name      string
	Type      VolumeType
	Driver    Driver         // of a GotgtVolume
	Ceph      string         // of an RBDVolume: the name of a CephCluster
	Image     string         // of an RBDVolume: pool/image or pool/namespace/image
	Owners    []string       // of an RBDVolume: the nodes of the cluster that may own it, the preferred one first; empty: it is this server's alone
	Failback  FailbackPolicy // with Owners
	Path      string         // of a file or block device; a relative one is below the state directory
	Size      Size           // 0 takes the size of the existing file or device
	BlockSize int            // logical block length in bytes: 512 or 4096
	Direct    bool           // O_DIRECT: bypass the page cache; default for block devices and behind the block cache
	MayBuffer bool           // Direct is a default that gives way where the file system has no direct I/O
	Write     WritePolicy
	ReadOnly  bool
	// Protection is the type of protection information (T10-DIF), 1 to 3, that is
	// kept in ProtectionFile; 0: none.
	Protection     int
	ProtectionFile string
	Encryption     *VolumeEncryption // nil: the data lie in clear

	Members []string      // of a MirrorVolume: two files or devices
	Map     string        // the file that says what the members of a MirrorVolume may differ in
	Held    Size          // memory of a MirrorVolume for what a member gets later
	Window  time.Duration // for how long one member takes the writes

	Excess       string // the file or device that takes the writes in excess; empty: none
	ExcessSize   Size   // that it is made with if there is none
	ExcessWrites int    // writes per second that are not in excess; 0: 80 % of their mean

	Threads int          // event threads of the logical unit; 0 lets the server choose
	Serial  string       // VPD page 80h; empty derives one from the server's identity and Name
	NAA     string       // VPD page 83h: 16 or 32 hexadecimal digits; empty derives one
	Cache   *VolumeCache // nil: not behind the block cache
	Vendor  string       // T10 vendor identification; empty takes the server's
	Product string       // product identification; empty takes the server's

	Revision    string   // product revision level; empty takes the server's
	Designators []string // of the logical unit in VPD page 83h, each whole in hexadecimal digits; nil: of Vendor, Product, Serial and NAA

	PhysicalBlockSize int  // physical block length in bytes that initiators are told: BlockSize or a power of two above; 0 takes the store's
	Removable         bool // the medium can be ejected and loaded
	SanitizeRate      Size // bytes per second that SANITIZE overwrites at most; 0: as many as it can
	SoftThreshold     Size // space left below which initiators are warned; 0: they are not

	Snapshots *SnapshotSchedule // nil: none are made by themselves
}

// SnapshotSchedule says when snapshots of a volume are made by themselves.
type SnapshotSchedule struct {
	Every time.Duration // one in each period of so long
	Keep  int           // so many of them; older ones are deleted
}

// Fleeting reports whether a volume's data end with the server.
func (v *Volume) Fleeting() bool {
	return v.Path == "" && v.Type != MirrorVolume && v.Type != RBDVolume
}

// Cache describes the block cache that the volumes share.
type Cache struct {
	Size             Amount // of data, a share is of the memory that the process may use; zero: there is no cache
	PerNode          bool   // Size is that of each NUMA node instead of all together
	BlockSize        Size   // of a cache block; 0: that of the segment which is there, else what suits most volumes
	Huge             string // huge pages: auto, off or require
	Segment          string // directory of the shared memory that outlives the process; empty: private memory
	SegmentGiven     bool   // Segment is the file's own, and not a default that depends on the volumes
	DirtyLimit       Amount // dirty data of all volumes; a share is of the cache
	ForwardThreshold Size   // Algorithm 1: requests below it are served where they arrive; 0 adapts, NeverForward
	Checksum         bool   // the data of blocks in the segment are checksummed
}

// NeverForward as Cache.ForwardThreshold serves every request where it arrives.
const NeverForward Size = -1

// VolumeCache says how a volume uses the block cache.
type VolumeCache struct {
	Admission  string        // lru or fussy
	Min        Size          // of the cache that other volumes cannot take; 0: none
	Max        Size          // of the cache that the volume may have; 0: all
	ReadAhead  Size          // read ahead of a sequential reader at most; 0: none
	FlushAge   time.Duration // write back: how long data may be dirty before it is written
	DirtyLimit Amount        // write back: dirty data of the volume, a share is of the cache; zero: that of the Cache
}

// VolumeEncryption says with what the data of a volume are encrypted at rest.
type VolumeEncryption struct {
	KeyFile    string // has the key that wraps the volume's own
	OldKeyFile string // had it before KeyFile; empty: nothing changes
	HeaderFile string // keeps the volume's own key, wrapped; empty: the cluster's state does, of a volume with owners
}

// Target is an iSCSI target. The first Access rule that matches an initiator
// decides; an initiator that none matches is not told that the target exists.
type Target struct {
	Name         string
	Alias        string
	PortalGroups []string // sorted; never empty
	Access       []Access // never empty
	Redirect     string   // host:port that logins are sent to for the time being; empty: none
	Moved        string   // host:port that logins are sent to for good; empty: none
}

// Access is what the initiators find in a target whom both Match and the
// AuthGroup's Match select. Of the two, only one has Initiators, and only one
// has Networks.
type Access struct {
	Match     Match
	AuthGroup string // empty asks for no authentication
	LUNs      []LUN  // ascending
}

// LUN maps a logical unit number to a volume.
type LUN struct {
	LUN      int // 0 to MaxLUN
	Volume   string
	ReadOnly bool
}

// MaxLUN is the largest logical unit number of the flat space addressing
// method (SAM-5 section 4.7.7.3).
const MaxLUN = 16383
