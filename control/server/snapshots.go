package server

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"lunar/control"
)

// SnapshotPath is the path of one snapshot. It is exported for the reflection of huma, as the
// requests are.
type SnapshotPath struct {
	VolumePath
	Snapshot string `path:"snapshot" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$" doc:"Name of the snapshot."`
}

// SnapshotRequest is the request for a snapshot.
type SnapshotRequest struct {
	VolumePath
	Body control.SnapshotRequest
}

// SnapshotCloneRequest is the request for a volume of a snapshot.
type SnapshotCloneRequest struct {
	SnapshotPath
	Body control.SnapshotClone
}

// SnapshotRollbackRequest is the request to roll a volume back.
type SnapshotRollbackRequest struct {
	SnapshotPath
	Body control.SnapshotRollback
}

func addSnapshots(api huma.API, s Source) {
	huma.Register(api, huma.Operation{OperationID: "get-snapshots", Method: http.MethodGet, Path: control.SnapshotsPath, Summary: "The snapshots of a volume"},
		func(_ context.Context, in *VolumePath) (*answer[control.SnapshotList], error) {
			all, err := s.Snapshots(in.Name)
			if err != nil {
				return nil, refusal(err)
			}
			return &answer[control.SnapshotList]{control.SnapshotList{Snapshots: all}}, nil
		})
	changeBy(api, describe("post-snapshot", http.MethodPost, control.SnapshotsPath, "Keep what a volume holds now as a snapshot, and what others hold at the same moment"),
		func(by Asker, in *SnapshotRequest) (control.SnapshotMade, error) {
			return s.MakeSnapshot(by, in.Name, in.Body)
		})
	changeBy(api, describe("delete-snapshot", http.MethodDelete, control.SnapshotPath, "Delete a snapshot that nobody uses"),
		func(by Asker, in *SnapshotPath) (control.Snapshot, error) {
			return s.DeleteSnapshot(by, in.Name, in.Snapshot)
		})
	changeBy(api, describe("post-snapshot-clone", http.MethodPost, control.SnapshotClonePath, "Make a volume of a snapshot, or serve the snapshot itself"),
		func(by Asker, in *SnapshotCloneRequest) (control.SnapshotCloned, error) {
			return s.CloneSnapshot(by, in.Name, in.Snapshot, in.Body)
		})
	changeBy(api, describe("post-snapshot-rollback", http.MethodPost, control.SnapshotRollbackPath, "Have a volume hold what it held at the moment of a snapshot"),
		func(by Asker, in *SnapshotRollbackRequest) (control.RolledBack, error) {
			return s.RollBack(by, in.Name, in.Snapshot, in.Body)
		})
}
