package server

import (
	"log/slog"
	"net/netip"
	"time"

	"lunar/control"
	"lunar/control/events"
	"lunar/internal/refusals"
)

// Source is the server that is controlled. Its methods may be called by any
// number of goroutines.
type Source interface {
	// Status returns what there is to tell now. It must not block for long.
	Status() control.Status
	// VolumeState and TargetState are the part of Status that is about one of a name; the
	// zero value if it is not served.
	VolumeState(name string) control.Volume
	TargetState(name string) control.Target
	// Latency tells how long commands take.
	Latency() control.Latencies
	// Rules returns what the token scheduler goes by.
	Rules() control.QoS
	// ChangeRules changes the rules in force, from which nothing else changes
	// them meanwhile, and returns what is then in force. The set that change
	// gets is its own. If change fails, or the error is a *Refusal, nothing
	// was changed.
	ChangeRules(change func(*control.RuleSet) error) (control.QoS, error)
	// Explain tells what the scheduler does for an initiator; an empty
	// name is all that have sessions.
	Explain(initiator string) control.Explanation
	// Why tells what a login would come to; an error may be a *Refusal.
	Why(control.WhyQuery) (control.Why, error)
	// Apply puts the configuration of a file's text into force in the name of who asks,
	// or tells what that would change. If there is an error, which may be a *Refusal, nothing
	// was changed.
	Apply(by Asker, f control.File) (control.Applied, error)
	// Running returns the configuration that is running, without secrets.
	Running() (control.RunningConfig, error)
	// Kick asks initiators to log out, and disconnects who does not; it
	// returns how many sessions are to end.
	Kick(control.Kick) (int, error)
	// Trace begins to trace a session; the caller closes the trace. An error may be a
	// *Refusal.
	Trace(session uint16) (Trace, control.TraceStart, error)
	// Drain keeps initiators away from a portal, or no longer.
	Drain(control.Drain) (control.Drained, error)
	// Drains tells of all that are drained.
	Drains() control.Drained
	// GroupReach tells how volumes are reached through each portal group, and TargetReach
	// how those of a target are, or of all targets if the name is empty.
	GroupReach() []control.Reach
	TargetReach(name string) map[string][]control.Reach
	// Rescan makes a volume as large as its file or device is now, in the name of who asks.
	Rescan(by Asker, volume string) (control.Rescanned, error)
	// Resync takes the member of a mirror back that was dropped, in the name of who asks.
	Resync(by Asker, volume string) (control.Resynced, error)
	// Scrub compares the members of a mirror, in the name of who asks.
	Scrub(by Asker, volume string) (control.Scrubbed, error)
	// Detach gives up a volume that was removed and whose data cannot be written, or
	// what the cache keeps of one. If there is an error, which may be a *Refusal,
	// nothing was given up.
	Detach(by Asker, volume string, d control.Detach) (control.Detached, error)
	// Freeze holds the commands of a volume, and of others that f names, until Thaw, the
	// deadline, the end of the server, or with f.Attended until gone is closed or who asks
	// may not any more. If there is an error, which may be a *Refusal, nothing is held.
	Freeze(by Asker, volume string, f control.Freeze, gone <-chan struct{}) (control.Frozen, error)
	// Thaw ends that for a volume and for those that were frozen with it.
	Thaw(volume string) (control.Thawed, error)
	// SendVolume sends a volume to another server, and ReceiveVolume takes one from it, which
	// is served once it is whole. Checksum reads one. Each takes as long as the volume is
	// large, and ends early when who asks cancels it.
	SendVolume(by Asker, volume string, s control.Send) (control.SentVolume, error)
	ReceiveVolume(by Asker, volume string, r control.Receive) (control.ReceivedVolume, error)
	Checksum(by Asker, volume string) (control.VolumeChecksum, error)
	// Snapshots tells of those of a volume. MakeSnapshot makes one, of others at the same
	// moment too, and DeleteSnapshot removes one that nobody uses. CloneSnapshot makes a volume
	// of one, and RollBack has the volume hold what it held then. If there is an error, which
	// may be a *Refusal, nothing was changed, unless it says so.
	Snapshots(volume string) ([]control.Snapshot, error)
	MakeSnapshot(by Asker, volume string, r control.SnapshotRequest) (control.SnapshotMade, error)
	DeleteSnapshot(by Asker, volume, snapshot string) (control.Snapshot, error)
	CloneSnapshot(by Asker, volume, snapshot string, r control.SnapshotClone) (control.SnapshotCloned, error)
	RollBack(by Asker, volume, snapshot string, r control.SnapshotRollback) (control.RolledBack, error)
	// Reservations tells what is reserved of all volumes.
	Reservations() control.Reservations
	// ClearReservations ends that for the volume of a name, and returns what there
	// was. If there is an error, which may be a *Refusal, nothing was changed.
	ClearReservations(volume string) (control.VolumeReservations, error)
	// ALUA tells how the volumes are reached through each portal group.
	ALUA() control.ALUA
	// ChangeAccess changes that for the portal group of a name. If there is an
	// error, which may be a *Refusal, nothing was changed.
	ChangeAccess(group string, change control.AccessChange) (control.ALUA, error)
	// ClusterState tells what this node knows of its cluster. MoveInCluster gives a volume to
	// another node, DrainInCluster lets one own none, and FenceInCluster takes its volumes from
	// it; they wait until that is so. Errors may be a *Refusal.
	ClusterState() (control.Cluster, error)
	// ClusterPromises tells what is promised over all nodes. The error may be a *Refusal.
	ClusterPromises() (control.ClusterPromises, error)
	MoveInCluster(by Asker, m control.ClusterMove) (control.Cluster, error)
	DrainInCluster(by Asker, d control.ClusterDrain) (control.Cluster, error)
	FenceInCluster(by Asker, f control.ClusterFence) (control.Cluster, error)
	// ClusterRevisions tells the last revisions of what the nodes' configurations have in
	// common, ClusterRevision one with its text (0: that in force), and ApplyInCluster makes
	// another one. Errors may be a *Refusal; then nothing was changed.
	ClusterRevisions() ([]control.ClusterRevision, error)
	ClusterRevision(revision int64) (control.ClusterRevision, error)
	ApplyInCluster(by Asker, f control.ClusterFile) (control.ClusterApplied, error)
	// Object tells what the configuration has at a path. The error may be a *Refusal.
	Object(path []string) (control.ObjectResource, error)
	// Objects tells of all that are at a path.
	Objects(path []string) ([]control.ObjectResource, error)
	// Change changes the configuration in the name of who asks. If there is an error,
	// which may be a *Refusal, nothing was changed.
	Change(by Asker, c control.Changes) (control.Changed, error)
	// Generations tells of the last states of the configuration file, and Generation of
	// one with its text.
	Generations() ([]control.Generation, error)
	Generation(number int) (control.Generation, error)
	// Rollback puts an earlier state into force and writes it; Save writes what was
	// changed at run time. Errors are as those of Change.
	Rollback(by Asker, r control.Rollback) (control.Changed, error)
	Save(by Asker, s control.Save) (control.Changed, error)
}

// Config says what a Server listens on and tells.
type Config struct {
	Socket  string // path of the unix socket
	Metrics MetricsPort
	Access  Access         // who else may ask, and where
	Vitals  Vitals         // how the process is; nil: always well
	Events  *events.Stream // what happens; nil: nobody is told
	Trail   *Trail         // where changes are noted; nil: in Logger
	Version string         // of the daemon, for the API's description
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
	maxBody        = 1 << 20  // bytes of every request but one with a File or Changes
	maxChanges     = 16 << 20 // bytes of one with Changes
	readTimeout    = 10 * time.Second
	writeTimeout   = 2 * time.Minute
	idleTimeout    = time.Minute
)

// MetricsPort says where the metrics, and nothing else, are served over TCP, and to
// whom. Files that are replaced are read again when the next client comes.
type MetricsPort struct {
	Address     string // host:port; empty: nowhere
	Certificate string // file of the certificate chain, PEM; empty: no TLS
	Key         string // file of its private key, PEM
	Token       string // file whose first line clients have to send (RFC 6750); empty: none
}

// Access says who besides root and the server's user may ask, and where.
type Access struct {
	Groups map[uint32]control.Role // of the system, by number, for the socket
	Port   ControlPort
	Known  []netip.Prefix // networks whose clients come before all others over TCP
}

// ControlPort says where the API is served over TLS, and to whom. Files that are replaced
// are read again when the next client comes.
type ControlPort struct {
	Address     string                  // host:port; empty: nowhere
	Certificate string                  // file of the certificate chain, PEM
	Key         string                  // file of its private key, PEM
	Tokens      string                  // file of tokens; empty: none
	ClientCA    string                  // file of the certificates that those of clients are judged by, PEM; empty: clients have none
	Clients     map[string]control.Role // names in certificates of clients
	Page        bool                    // whether the web page is served to whoever comes
}
