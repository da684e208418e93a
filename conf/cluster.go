package conf

import (
	"net/netip"
	"slices"
	"time"
)

// Cluster is the cluster of servers that this one is a node of.
type Cluster struct {
	Named      string // the cluster's name
	Node       string // the name of this server in it
	Etcd       Etcd
	Link       Link
	Lease      time.Duration // for how long a node is heard to live, and its cached data are known to be the newest
	Suspect    time.Duration // from when a node that is not heard may lose volumes without a cache
	Hold       time.Duration // for how long commands wait until it is decided who owns a volume
	LeaseCache bool          // cached data are served only while the lease holds; false: the cache is not used for volumes with owners
}

// Etcd is where a cluster keeps what its nodes know together.
type Etcd struct {
	Mode      string   // EmbeddedEtcd or ExternalEtcd
	Endpoints []string // of ExternalEtcd: URLs of its members
	// With what it is asked over TLS.
	CA, Certificate, Key string
}

// Link is how the other nodes connect to this one.
type Link struct {
	// Listen is where they do. Not valid: with EmbeddedEtcd at the address of init or join, at the
	// port behind the member's three; with ExternalEtcd nowhere, and there are no links.
	Listen netip.AddrPort
	// With what nodes prove who they are; empty: with EmbeddedEtcd by the certificates of init and
	// join.
	CA, Certificate, Key string
}

// Where etcd runs.
const (
	EmbeddedEtcd = "embedded" // as a child of the server
	ExternalEtcd = "external" // somewhere else, as Endpoints say
)

// FailbackPolicy says whether a volume goes back to the first of its owners.
type FailbackPolicy string

// The policies.
const (
	ManualFailback FailbackPolicy = "manual" // when an administrator says so
	AutoFailback   FailbackPolicy = "auto"   // when that node has come back
)

// Clustered reports whether one node of several serves the volume at a time.
func (v *Volume) Clustered() bool { return len(v.Owners) > 0 }

// OwnedBy reports whether a node may own the volume.
func (v *Volume) OwnedBy(node string) bool { return slices.Contains(v.Owners, node) }
