package daemon

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"lunar/conf"
	"lunar/conf/edit"
	"lunar/control"
	"lunar/control/events"
	"lunar/control/server"
	"lunar/daemon/medium"
	"lunar/daemon/volumes"
	"lunar/internal/systemd"
	"lunar/iser"
	"lunar/scheduler"
	"lunar/target"
	"lunar/target/bottleneck"
	"lunar/target/scsi"
	"lunar/target/tcp"
)

// daemon is the server with what outlives its volumes.
type daemon struct {
	*target.Server
	*volumes.Set
	vitals
	qos  *qos // rules of the token scheduler
	tcp  *tcp.Transport
	rdma rdma

	images chan struct{} // an image has got another size in its cluster

	member *membership // of a cluster; nil: of none

	links bottleneck.Links // that connections of both share, by class

	gone sync.Mutex // held from when the cache's memory is being given up

	config    atomic.Pointer[conf.Config]       // that is running
	file      atomic.Pointer[conf.Config]       // of the file that the server was started with, as it was read last
	assembly  *assembly                         // of what is running; whoever changes it holds applier.changing
	lastApply atomic.Pointer[control.LastApply] // nil: none yet
	output    *output                           // of the log; nil: it cannot change
	service   *systemd.Service                  // that the process is of; nil: of none
	events    *events.Stream                    // what happens; nil: nobody is told
}

// Shutdown ends the server, whose volumes write their dirty data, and then closes the
// cache. Data that could not be written stay in the segment, which the note records.
func (d *daemon) Shutdown(ctx context.Context) error {
	err := errors.Join(d.leaveCluster(ctx), d.Server.Shutdown(ctx), d.member.unlink())
	if d.Cache == nil {
		return err
	}
	d.gone.Lock() // for good: see unwritten
	return errors.Join(err, d.CloseCache())
}

// unwritten is how many dirty bytes the cache has, 0 when it has been given up.
func (d *daemon) unwritten() int64 {
	if d.Cache == nil || !d.gone.TryLock() {
		return 0
	}
	defer d.gone.Unlock()
	return int64(d.Cache.Stats().DirtyBytes)
}

// assembly is a server while it is put together.
type assembly struct {
	*volumes.Set
	compared *compared // with what was applied last
	daemon   *daemon
	targets  map[string]target.TargetConfig
}

// applied is what the state directory knows of the configuration that was in force
// last: what the next start compares its own with. It has no secrets.
type applied struct {
	File         string // that the server was started with; empty: none
	Volumes      []conf.Volume
	Sizes        map[string]int64 // bytes that volumes had
	Targets      []conf.Target
	PortalGroups []conf.PortalGroup
}

// compared is what a start may do.
type compared struct {
	allowed conf.Allowed
	last    *applied // nil: nothing was applied before
	service *systemd.Service
	from    volumes.Source
	member  *membership // of a cluster; nil: of none
}

// applier puts a changed configuration into force on a daemon: all of it, or
// nothing.
type applier struct {
	daemon *daemon
	serve  Options // the flags
	dir    string  // state directory
	log    *slog.Logger

	changing sync.Mutex      // one change at a time; see lock
	line     line            // of changes that wait for it
	parsed   conf.Memory     // of changed texts; used under changing
	life     context.Context // ends before the daemon does
	kill     context.CancelFunc
	api      *server.Server // nil: there is none; changed under changing
	texts    atomic.Pointer[texts]
	etags    [32]byte      // the key of ETags, which are of secrets, too
	trail    *server.Trail // where changes are noted
	warned   warned        // changed under changing

	mu      sync.Mutex
	leaving []*departure // under mu

	frozen    freezes
	moves     moves
	snapshots snapshots
	cloning   sync.Mutex // held while a snapshot is made a volume, before changing
}

// change puts a configuration into force: first everything that can fail, which
// is undone if something does, then everything that cannot.
type change struct {
	*applier
	old, cfg *conf.Config
	plan     conf.Plan
	edit     *editing // of the file; nil: it is read
	rules    ruleSet  // to be in force
	by       server.Asker
	joint    *joint // revision of the cluster's configuration that it is part of, or that stays; nil: there is none
	judging  bool   // volumes that this node could not open are refused
	sizes    resizes

	added    []*conf.Volume  // that were opened
	reopened map[string]bool // volumes that were opened anew
	portals  *target.PortalChange
	admitted outcome // of the QoS rules
	undo     []func() error
	did      []string // what is to be told besides the plan
}

// departure is a volume that is being closed.
type departure struct {
	*conf.Volume
	unit  *scsi.LogicalUnit
	given chan struct{} // closed when it was given up
}

// source tells the control API of the daemon.
type source struct {
	daemon  *daemon
	started time.Time
	changes *applier

	accessing sync.Mutex // one change of access states at a time
}

// ruleSet is the rules and groups of a policy in their normal form, and what
// they are admitted by; it does not change.
type ruleSet struct {
	Rules      []scheduler.Rule
	Groups     []scheduler.Group
	Overcommit bool // reservations may be more than the capacity
}

// qos is what the token scheduler goes by: the rules that the configuration
// has, and those in force.
type qos struct {
	cfg      *conf.Config // whose QoS section holds; changed under mu
	log      *slog.Logger
	devices  medium.Devices   // of volumes
	measured map[string]int64 // tokens/s of each device when it came, as far as it was measured; as cfg

	mu struct {
		sync.Mutex
		configured ruleSet // of the file, as it was read last
		live       ruleSet
		outcome    outcome // of their admission
	}
}

// outcome is how rules were admitted.
type outcome struct {
	Note     string // what there is to say; empty: nothing
	Standing bool   // the reservations are more than the capacity
}

// with is both outcomes; what stands comes first.
func (o outcome) with(other outcome) outcome {
	if other.Standing && !o.Standing {
		o, other = other, o
	}
	if other.Note != "" && (other.Standing || !o.Standing) {
		o.Note = strings.TrimPrefix(o.Note+"; "+other.Note, "; ")
	}
	return o
}

// rdma is iSCSI over RDMA, if the configuration asks for it.
type rdma struct {
	mu struct {
		sync.Mutex
		transport *iser.Transport // nil: it is off
		off       string          // why it is off although it was asked for
		stopped   bool
	}
}

// output is what of the log may change while the daemon runs.
type output struct {
	level slog.LevelVar
	json  atomic.Bool
}

// resizes are the volumes whose size is to change: those that grow come first.
type resizes []resizing

type resizing struct {
	name     string
	unit     *scsi.LogicalUnit
	from, to int64 // bytes
	outside  bool  // the file or device has that size already
}

// document is the text of a configuration.
type document struct {
	text  []byte
	parse func() (*edit.Document, error) // once
}

// texts are what a server goes by, as it was written.
type texts struct {
	running *document
	file    *document // of the file that the server was started with, as it was read last; nil: there is none
}
