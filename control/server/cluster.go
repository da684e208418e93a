package server

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"lunar/control"
)

type clusterMoveRequest struct{ Body control.ClusterMove }

type clusterDrainRequest struct{ Body control.ClusterDrain }

type clusterFenceRequest struct{ Body control.ClusterFence }

func addCluster(api huma.API, s Source) {
	change(api, "get-cluster", http.MethodGet, control.ClusterPath, "What this node knows of its cluster",
		func(*struct{}) (control.Cluster, error) { return s.ClusterState() })
	changeBy(api, describe("post-cluster-move", http.MethodPost, control.ClusterMovePath, "Give a volume to another node of the cluster"),
		func(by Asker, in *clusterMoveRequest) (control.Cluster, error) { return s.MoveInCluster(by, in.Body) })
	changeBy(api, describe("post-cluster-drain", http.MethodPost, control.ClusterDrainPath, "Let a node of the cluster own no volumes, or some again"),
		func(by Asker, in *clusterDrainRequest) (control.Cluster, error) {
			return s.DrainInCluster(by, in.Body)
		})
	changeBy(api, describe("post-cluster-fence", http.MethodPost, control.ClusterFencePath, "Take the volumes of a node of the cluster from it"),
		func(by Asker, in *clusterFenceRequest) (control.Cluster, error) {
			return s.FenceInCluster(by, in.Body)
		})
}
