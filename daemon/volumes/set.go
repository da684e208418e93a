package volumes

import (
	"context"
	"encoding/json"
	"io/fs"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"lunar/backstore"
	"lunar/backstore/crypt"
	"lunar/backstore/rbd"
	"lunar/cache/tier"
	"lunar/cluster"
	"lunar/cluster/heritage"
	"lunar/conf"
	"lunar/daemon/state"
	"lunar/internal/durable"
	"lunar/internal/numa"
	"lunar/internal/refusals"
	"lunar/target/scsi"
)

// Config is what volumes go by.
type Config struct {
	Conf     *conf.Config // that is in force, or about to be
	Log      *slog.Logger
	StateDir string
	Identity string
	Naming   *state.Naming // nil: every volume is new
	Topology numa.Topology
	From     Source // of the configuration
	Ceph     *rbd.Clients
	Cluster  *Cluster            // of which the server is a node; nil: of none
	Next     *conf.Config        // whose volumes are being opened before it is in force; nil: Conf
	Resized  func(volume string) // hears that a volume's image has got another size elsewhere; nil: nobody does
}

// Set is the volumes of a server, with the cache and what is known of them. Whoever
// changes it holds the lock of changes; what says so may be used at any time.
type Set struct {
	Config
	left      state.SegmentNote // of the server before this one
	CacheSize conf.Size         // of data on all nodes
	rehearsal *tier.Rehearsal   // nil: it is none
	Open      map[string]*Volume
	shared    sync.Map                             // from names of volumes to *Shared
	aliases   sync.Map                             // from names of volumes to alias
	owners    func() state.Owners                  // of the stores on record; gathered once, when one is not what it was
	Forgets   func(name string, bytes int64) error // refuses to keep data of a volume that is not configured; nil: they are kept

	Cache    *tier.Cache // nil: none
	Health   *health     // at any time
	Refusals *refusals.Counters

	Fresh *durable.Batch // of what opening makes, while many volumes are opened; nil: at once

	noting sync.Mutex
	note   *state.SegmentNote // nil: nothing was noted; changed under noting
}

// NewSet makes one without cache and volumes.
func NewSet(c Config) *Set {
	return &Set{
		Config: c, Health: newHealth(), Refusals: &refusals.Counters{}, Open: map[string]*Volume{},
		owners: sync.OnceValue(func() state.Owners { return state.RecordedOwners(c.Conf.Volumes, c.StateDir) }),
	}
}

// Source is where a configuration comes from, for the commands that messages name.
type Source struct{ Config, Socket string }

// Volume is a volume that is open.
type Volume struct {
	layers
	Unit *scsi.LogicalUnit
	Slot *backstore.Slot // where the unit has its store

	Shared *Shared // of a volume with owners, whose layers come and go; nil: it is this server's alone
}

// layers are what holds the bytes of an open volume. Others take their place when it is
// opened anew.
type layers struct {
	store  backstore.Store // all of them
	file   fs.FileInfo     // what it was opened from; nil: it has no path, or that could not be looked at
	Cipher *crypt.Store    // nil: it is not encrypted
	Cached tier.Changeable // its part in the cache; nil: there is none
}

// sighting is what a start has found where a volume is to be.
type sighting struct {
	state.Sighting
	orphans []tier.Orphan // of this volume, but not of its identity or store
}

// Unit is the logical unit of an open volume; nil: it is not open.
func (a *Set) Unit(volume string) *scsi.LogicalUnit {
	if v := a.Open[volume]; v != nil {
		return v.Unit
	}
	return nil
}

// Cluster is what volumes that several servers present have in common.
type Cluster struct {
	Identity string        // of all servers together: the volumes' serials follow from it
	Node     string        // this server
	Hold     time.Duration // see conf.Cluster
	Cached   bool          // cached data are served while a lease lasts
	// Access is how a volume that a node serves is reached through all portal groups of
	// the cluster.
	Access func(owner string) map[uint16]scsi.PortAccess
	// Relay leads to the node that owns a volume since an epoch; nil: there are no links.
	Relay func(owner string, epoch uint64) scsi.Carrier
	// Lost hears, on any goroutine, that what a volume has open for a claim is lost to
	// somebody else.
	Lost func(volume string, epoch uint64)
	// Inherit returns what earlier owners of a volume have left of it in one of its keys (nil:
	// nothing), and what a claim of this node changes it by.
	Inherit func(ctx context.Context, volume string, epoch uint64, key string) (*heritage.Ledger, json.RawMessage, error)
	Keys    cluster.Keys // of the cluster's state
	// Bequeath has the first owner of a volume find something left. It fails if there is an owner, or
	// something is there.
	Bequeath func(ctx context.Context, volume string, value json.RawMessage) error
	// Life ends when the server leaves the cluster: it is asked then no more whether Ceph answers.
	Life    context.Context
	answers map[pool]*rbd.Answers
}

// pool is where images are.
type pool struct {
	account rbd.Account
	name    rbd.Name // without an image
}

// answersOf is whether Ceph answers about the pool of an image. It is called by whoever changes
// the Set.
func (c *Cluster) answersOf(ceph *rbd.Clients, image *rbd.Config) *rbd.Answers {
	p := pool{image.Account, rbd.Name{Pool: image.Image.Pool, Namespace: image.Image.Namespace}}
	if c.answers == nil {
		c.answers = map[pool]*rbd.Answers{}
	}
	if c.answers[p] == nil {
		c.answers[p] = ceph.Answers(c.Life, p.account, p.name)
	}
	return c.answers[p]
}

// Shared is a volume that several servers present, while one at a time has its image open.
// Its methods are called one at a time, but for Trust and Refresh.
type Shared struct {
	set     *Set
	volume  conf.Volume
	image   rbd.Config
	unit    *scsi.LogicalUnit
	slot    *backstore.Slot
	failing *deferral
	answers *rbd.Answers
	trusted atomic.Int64           // when what is cached is not known any more to be the newest, on the clock of since
	leave   func() error           // of the instance; nil: there is none
	opening rbd.Config             // by which the image was opened last; changes while the slot is exchanged
	tenure  atomic.Pointer[tenure] // nil: the image is not open here

	encryption atomic.Pointer[conf.VolumeEncryption] // nil: the data lie in clear
	cipher     atomic.Pointer[crypt.Store]           // that is open; nil: none
	judge      judge

	mu    sync.Mutex
	owner string // the node that serves the volume; empty: it is not decided
	// elsewhere leads to it; nil: it is this one, or there is no way.
	elsewhere scsi.Carrier
}
