package conf

import (
	"net/netip"
	"time"
)

// Config is a whole configuration in its normal form: the slices of named
// objects are sorted by name and every default is filled in.
type Config struct {
	Server       Server
	Log          Log
	Cache        Cache
	Discovery    Discovery
	PortalGroups []PortalGroup
	AuthGroups   []AuthGroup
	Volumes      []Volume
	Targets      []Target
}

// Server sizes the process.
type Server struct {
	Threads          int           // event threads; 0 lets the server choose one per CPU
	CPUs             []int         // CPUs that event threads are pinned to, ascending; empty means every CPU that the process may use
	BuffersPerThread Size          // off-heap data buffers of each event thread
	BusyPoll         time.Duration // how long an event thread looks for work before it sleeps, while that pays; 0 never
	Limits           Limits
	NOP              NOP
}

// Limits bounds what initiators can make the server hold.
type Limits struct {
	ConnectionsInLogin int           // connections that have not finished their login, over all portals
	LoginTimeout       time.Duration // from accept to the end of the login phase
	Sessions           int           // sessions over all targets
	QueueDepth         int           // commands of one session (its command window, RFC 7143 section 4.2.2.1)
	MemoryPerSession   Size          // data buffers that one session may hold
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
}

// PortalGroup is a set of portals that share a tag (RFC 7143 section 4.1.2).
type PortalGroup struct {
	Name   string
	Tag    uint16
	Listen []netip.AddrPort // ascending; [::] is IPv6 only, so that dual stack is two entries
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
	User   string
	Secret Secret
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
)

// WritePolicy says when a write is acknowledged.
type WritePolicy string

// The write policies.
const (
	WriteThrough WritePolicy = "through" // when the kernel has the data; a flush makes it stable (WCE=1)
	WriteSync    WritePolicy = "sync"    // when the data is on stable media (WCE=0)
)

// Volume is what a logical unit is made of.
type Volume struct {
	Name      string
	Type      VolumeType
	Path      string // of a file or block device; a relative one is below the state directory
	Size      Size   // 0 takes the size of the existing file or device
	BlockSize int    // logical block length in bytes: 512 or 4096
	Direct    bool   // O_DIRECT: bypass the page cache; default for block devices
	Write     WritePolicy
	ReadOnly  bool
	Threads   int          // event threads of the logical unit; 0 lets the server choose
	Serial    string       // VPD page 80h; empty derives one from the server's identity and Name
	NAA       uint64       // VPD page 83h; 0 derives a locally assigned one from Serial
	Cache     *VolumeCache // nil: not behind the block cache
	Vendor    string       // T10 vendor identification; empty takes the server's
	Product   string       // product identification; empty takes the server's
}

// Cache sizes the block cache that the volumes share.
type Cache struct {
	Size      Size // of data; 0: there is no cache
	BlockSize Size // of a cache block
}

// VolumeCache says how a volume uses the block cache.
type VolumeCache struct {
	Admission string // lru or fussy
	Min       Size   // of the cache that other volumes cannot take; 0: none
	Max       Size   // of the cache that the volume may have; 0: all
	ReadAhead Size   // read ahead of a sequential reader at most; 0: none
}

// Target is an iSCSI target. The first Access rule that matches an initiator
// decides; an initiator that none matches is not told that the target exists.
type Target struct {
	Name         string
	Alias        string
	PortalGroups []string // sorted; never empty
	Access       []Access // never empty
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
