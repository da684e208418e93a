package control

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// The paths of snapshots.
const (
	SnapshotsPath        = "/v1/volumes/{name}/snapshots"
	SnapshotPath         = "/v1/volumes/{name}/snapshots/{snapshot}"
	SnapshotClonePath    = "/v1/volumes/{name}/snapshots/{snapshot}/clone"
	SnapshotRollbackPath = "/v1/volumes/{name}/snapshots/{snapshot}/rollback"
)

// DefaultHold is how long the commands of a volume are held at most for a snapshot, unless
// who asks for it says otherwise.
const DefaultHold = 10 * time.Second

// Snapshot is what a volume held at a moment.
type Snapshot struct {
	Name   string    `json:"name" doc:"Its name among those of the volume."`
	At     time.Time `json:"at" doc:"The moment of which it is."`
	Size   int64     `json:"size" doc:"Bytes that the volume had."`
	Owned  *int64    `json:"owned,omitempty" doc:"Bytes of the file system that are free once it is deleted; absent: not measured."`
	Shared *int64    `json:"shared,omitempty" doc:"Bytes that it shares with the volume, or with other snapshots and clones; absent: not measured."`
	Path   string    `json:"path" doc:"Its file; empty: an image has it."`
	Used   string    `json:"used,omitempty" doc:"The volume that serves it; absent: none does."`
}

// SnapshotList is the answer of SnapshotsPath.
type SnapshotList struct {
	Snapshots []Snapshot `json:"snapshots" nullable:"false" doc:"All of the volume, the oldest first."`
}

// SnapshotRequest asks for a snapshot.
type SnapshotRequest struct {
	Name     string   `json:"name,omitempty" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$" doc:"What it is to be called. Absent: by the moment, such as 20261126T070000.000Z. Names that begin with auto- are those of the schedule."`
	With     []string `json:"with,omitempty" nullable:"false" maxItems:"1000" doc:"Further volumes, of which there are to be snapshots of the same moment and name."`
	Deadline string   `json:"deadline,omitempty" doc:"For how long commands are held at most, such as 10s; then there is no snapshot. 1s to 5m, absent: 10s."`
}

// SnapshotMade is what has come of a SnapshotRequest.
type SnapshotMade struct {
	Name    string    `json:"name" doc:"Its name."`
	Volumes []string  `json:"volumes" nullable:"false" doc:"Of which there are snapshots now."`
	At      time.Time `json:"at" doc:"The moment: everything that was acknowledged before is in it."`
	Held    string    `json:"held" doc:"For how long commands were held."`
}

// Outcome is for the log.
func (m SnapshotMade) Outcome() string {
	return fmt.Sprintf("snapshot %s of %s, commands held for %s", m.Name, strings.Join(m.Volumes, ", "), m.Held)
}

// SnapshotClone asks for a volume made of a snapshot.
type SnapshotClone struct {
	Volume        string `json:"volume" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$" doc:"Name of the new volume."`
	Path          string `json:"path,omitempty" doc:"Its file, where nothing is, in the same file system; of type rbd its image, POOL/IMAGE. Absent: beside the volume's, with the name of the new volume."`
	ReadOnly      bool   `json:"readOnly,omitempty" doc:"Serve it read-only: the snapshot itself, which takes nothing more, or a clone where it has protection information, is encrypted or an image of Ceph."`
	Configuration Object `json:"configuration,omitzero" doc:"Keys of the new volume besides, or other than, those that it has of the volume."`
	Permissions
}

// Loggable is what a log may have of it.
func (c SnapshotClone) Loggable() any {
	c.Configuration = c.Configuration.loggable("volumes")
	return c
}

// SnapshotCloned is what has come of it.
type SnapshotCloned struct {
	Path string `json:"path" doc:"The new volume's file or image."`
	Took string `json:"took" doc:"For how long its file was made."`
	Changed
}

// SnapshotRollback says how a volume is rolled back.
type SnapshotRollback struct {
	Force   bool `json:"force,omitempty" doc:"Though sessions use the volume: their data change below them."`
	Discard bool `json:"discard,omitempty" doc:"Do not keep what the volume holds now as a snapshot."`
}

// RolledBack is what has come of rolling a volume back.
type RolledBack struct {
	At   time.Time `json:"at" doc:"The moment of which the volume is now."`
	Kept string    `json:"kept,omitempty" doc:"Snapshot of what it held before; absent: that is gone."`
	Held string    `json:"held" doc:"For how long commands were held."`

	Warning string `json:"warning,omitempty" doc:"What was left undone; absent: nothing."`
}

// Outcome is for the log.
func (r RolledBack) Outcome() string {
	kept := "what it held is gone"
	if r.Kept != "" {
		kept = "what it held is snapshot " + r.Kept
	}
	if r.Warning != "" {
		kept += "; " + r.Warning
	}
	return fmt.Sprintf("as of %s; %s", r.At.UTC().Format(time.RFC3339), kept)
}

// VolumeSnapshots is what there is to tell of the snapshots of a volume.
type VolumeSnapshots struct {
	Count       int        `json:"count" metric:"snapshots" doc:"Snapshots of a volume."`
	Newest      *time.Time `json:"newest,omitempty" doc:"The moment of the newest; absent: there is none."`
	OwnedBytes  int64      `json:"owned_bytes" metric:"owned_bytes" doc:"Bytes of the file system that only a volume's file has."`
	SharedBytes int64      `json:"shared_bytes" metric:"shared_bytes" doc:"Bytes that a volume's file shares with its snapshots or with clones: writing there takes space anew."`
	Due         *time.Time `json:"due,omitempty" doc:"When the schedule makes the next; absent: there is none."`
	Failed      string     `json:"failed,omitempty" doc:"Why the last one that the schedule wanted was not made; absent: it was."`
}

// SnapshotsAt is where the snapshots of a volume are.
func SnapshotsAt(volume string) string { return pathOf(SnapshotsPath, "{name}", volume) }

// Snapshots asks for those of a volume.
func (c *Client) Snapshots(ctx context.Context, volume string) ([]Snapshot, error) {
	var list SnapshotList
	err := c.Get(ctx, SnapshotsAt(volume), &list)
	return list.Snapshots, err
}

// Snapshot makes one, and of other volumes with it.
func (c *Client) Snapshot(ctx context.Context, volume string, r SnapshotRequest) (SnapshotMade, error) {
	var out SnapshotMade
	err := c.send(ctx, http.MethodPost, SnapshotsAt(volume), r, &out)
	return out, err
}

// StartSnapshot is Snapshot as a job.
func (c *Client) StartSnapshot(ctx context.Context, volume string, r SnapshotRequest) (Job, error) {
	return c.start(ctx, http.MethodPost, SnapshotsAt(volume), r)
}

// DeleteSnapshot removes one that nobody uses, and returns what it was.
func (c *Client) DeleteSnapshot(ctx context.Context, volume, snapshot string) (Snapshot, error) {
	var out Snapshot
	err := c.send(ctx, http.MethodDelete, snapshotAt(SnapshotPath, volume, snapshot), nil, &out)
	return out, err
}

// CloneSnapshot makes a volume of one.
func (c *Client) CloneSnapshot(ctx context.Context, volume, snapshot string, r SnapshotClone) (SnapshotCloned, error) {
	var out SnapshotCloned
	err := c.send(ctx, http.MethodPost, snapshotAt(SnapshotClonePath, volume, snapshot), r, &out)
	return out, err
}

// StartRollBack has a volume hold what it held then, as a job.
func (c *Client) StartRollBack(ctx context.Context, volume, snapshot string, r SnapshotRollback) (Job, error) {
	return c.start(ctx, http.MethodPost, snapshotAt(SnapshotRollbackPath, volume, snapshot), r)
}

// RollBack is the same, waited for.
func (c *Client) RollBack(ctx context.Context, volume, snapshot string, r SnapshotRollback) (RolledBack, error) {
	var out RolledBack
	err := c.send(ctx, http.MethodPost, snapshotAt(SnapshotRollbackPath, volume, snapshot), r, &out)
	return out, err
}

func snapshotAt(path, volume, snapshot string) string {
	return pathOf(pathOf(path, "{name}", volume), "{snapshot}", snapshot)
}
