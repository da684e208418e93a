package server

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"lunar/control"
)

// RevisionPath is the path of a revision of the cluster's configuration. It is exported for
// the reflection of huma.
type RevisionPath struct {
	Revision int64 `path:"revision" minimum:"0" doc:"Its number; 0: that which is in force on this node."`
}

// maxClusterFile bounds a text in bytes.
const maxClusterFile = 8 << 20

type clusterFileRequest struct{ Body control.ClusterFile }

func addClusterConfig(api huma.API, s Source) {
	change(api, "get-cluster-config", http.MethodGet, control.ClusterConfigPath, "The last revisions of the configuration that the cluster's nodes have in common",
		func(*struct{}) (control.ClusterRevisionList, error) {
			all, err := s.ClusterRevisions()
			return control.ClusterRevisionList{Revisions: all}, err
		})
	change(api, "get-cluster-revision", http.MethodGet, control.ClusterRevisionPath, "One revision of the cluster's configuration, with its text and without secrets",
		func(in *RevisionPath) (control.ClusterRevision, error) { return s.ClusterRevision(in.Revision) })
	op := describe("post-cluster-config", http.MethodPost, control.ClusterConfigPath, "Make a text the configuration of all nodes of the cluster")
	op.MaxBodyBytes = applyBody(maxClusterFile)
	changeBy(api, op,
		func(by Asker, in *clusterFileRequest) (control.ClusterApplied, error) {
			return s.ApplyInCluster(by, in.Body)
		})
}
