package control

import (
	"context"
	"net/http"
	"time"
)

// The paths of the cluster that a server is a node of.
const (
	ClusterPath      = "/v1/cluster"
	ClusterMovePath  = "/v1/cluster/move"
	ClusterDrainPath = "/v1/cluster/drain"
	ClusterFencePath = "/v1/cluster/fence"
)

// Cluster is what a node knows of its cluster.
type Cluster struct {
	Name     string          `json:"name" doc:"Name of the cluster."`
	Node     string          `json:"node" doc:"The node that tells this."`
	Joined   bool            `json:"joined" doc:"Whether this node has its place in the cluster: without, it takes no volumes over, and reads pass its cache by."`
	Why      string          `json:"why,omitempty" doc:"Why it has none."`
	Lease    float64         `json:"lease_seconds" doc:"For how long cached data are served if the cluster does not answer any more; 0: they are not."`
	Revision int64           `json:"revision" doc:"Revision of the cluster's configuration that is in force here; 0: none."`
	Behind   string          `json:"behind,omitempty" doc:"Why that is not the newest."`
	Nodes    []ClusterNode   `json:"nodes" nullable:"false" doc:"Nodes that live, and those that may own volumes, by name."`
	Volumes  []ClusterVolume `json:"volumes" nullable:"false" doc:"Volumes with owners, by name."`
	Links    []ClusterLink   `json:"links" nullable:"false" doc:"Links to other nodes, by name."`
}

// ClusterLink is how a node is reached over its links, and what was relayed over them.
type ClusterLink struct {
	Node      string  `json:"node" doc:"The other node."`
	Address   string  `json:"address" doc:"Where it is reached."`
	Up        bool    `json:"up" metric:"up" doc:"Whether there is a link to another node."`
	Why       string  `json:"why,omitempty" doc:"What keeps it from being reached."`
	RoundTrip float64 `json:"round_trip_seconds" metric:"round_trip_seconds" doc:"How long the last beat to another node and its answer took."`
	Queued    int64   `json:"queued_bytes" metric:"queued_bytes" doc:"Bytes that wait to be sent to another node."`
	Relayed   uint64  `json:"relayed" metric:"relayed_commands_total" doc:"Commands of sessions here that were relayed to another node, which owns their volumes."`
	Relaying  int64   `json:"relaying" metric:"relaying_commands" doc:"Commands that were relayed to another node and are not answered yet."`
	Unknown   uint64  `json:"unknown" metric:"relayed_unknown_total" doc:"Commands that were relayed to another node and whose answer got lost with the connection: their initiators send them again."`
	Served    uint64  `json:"served" metric:"served_commands_total" doc:"Commands of sessions at another node that it has relayed to this one."`
	Serving   int64   `json:"serving" metric:"serving_commands" doc:"Commands that another node has relayed to this one and that are not answered yet."`
}

// owned is how many volumes the node owns that tells this.
func (c *Cluster) owned() (n int) {
	for i := range c.Volumes {
		if c.Volumes[i].Owner == c.Node && c.Volumes[i].State == "owned" {
			n++
		}
	}
	return n
}

// ClusterNode is a node that lives, or may own volumes.
type ClusterNode struct {
	Name     string          `json:"name" doc:"Name of the node."`
	State    string          `json:"state" enum:"ok,away,silent,drained,behind" doc:"ok; away: it does not live, or does not reach the cluster; silent: it was not heard a moment ago; drained: it is to own no volumes; behind: its configuration is not the cluster's newest."`
	Revision int64           `json:"revision" doc:"Revision of the cluster's configuration that it goes by; 0: none, or not known."`
	Behind   string          `json:"behind,omitempty" doc:"Why that is not the newest."`
	Version  string          `json:"version" doc:"Version of Lunar that it runs."`
	Since    time.Time       `json:"since,omitzero" doc:"Since when this node sees its process."`
	Heard    bool            `json:"heard" doc:"Whether it was heard a moment ago; without, its volumes are about to be taken over."`
	Draining bool            `json:"draining" doc:"It is to own no volumes."`
	Portals  []string        `json:"portals" nullable:"false" doc:"Its portals, each with the tag of its group."`
	Volumes  []string        `json:"volumes" nullable:"false" doc:"Volumes that it owns."`
	Unable   []ClusterUnable `json:"unable" nullable:"false" doc:"Volumes that it could not open, by name: it is not given them."`
}

// ClusterUnable is a volume that a node could not open.
type ClusterUnable struct {
	Volume string `json:"volume" doc:"Name of the volume."`
	Why    string `json:"why" doc:"Why the node could not open it: what it lacks."`
}

// ClusterVolume is a volume with owners.
type ClusterVolume struct {
	Name   string   `json:"name" doc:"Name of the volume."`
	Owner  string   `json:"owner" doc:"Node that owns it, or did last; empty: none did."`
	State  string   `json:"state" doc:"owned; claiming: the owner is taking it over; free: its last owner has closed it; none: nobody ever had it."`
	Epoch  uint64   `json:"epoch" doc:"How often it has changed its owner."`
	Here   string   `json:"here,omitempty" doc:"What this node is doing with it: follower, suspecting, fencing, opening, owner or draining; absent: it is not configured here."`
	Owners []string `json:"owners" nullable:"false" doc:"Nodes that may own it, by this node's configuration."`
	Size   int64    `json:"size_bytes" doc:"Size of the volume."`
}

// ClusterMove is the request to give a volume to another node.
type ClusterMove struct {
	Volume string `json:"volume" doc:"Name of the volume."`
	Node   string `json:"node" doc:"Node that is to own it."`
}

// ClusterDrain is the request to let a node own no volumes, or to let it own some again.
type ClusterDrain struct {
	Node string `json:"node" doc:"Name of the node."`
	Off  bool   `json:"off,omitempty" doc:"It may own volumes again."`
}

// ClusterFence is the request to take the volumes of a node from it.
type ClusterFence struct {
	Node string `json:"node" doc:"Name of the node."`
}

// Cluster asks what a node knows of its cluster.
func (c *Client) Cluster(ctx context.Context) (Cluster, error) {
	var out Cluster
	err := c.Get(ctx, ClusterPath, &out)
	return out, err
}

// MoveInCluster gives a volume to another node, and returns when that one owns it.
func (c *Client) MoveInCluster(ctx context.Context, m ClusterMove) (Cluster, error) {
	var out Cluster
	err := c.send(ctx, http.MethodPost, ClusterMovePath, m, &out)
	return out, err
}

// DrainInCluster has a node own no volumes, or lets it own some again.
func (c *Client) DrainInCluster(ctx context.Context, d ClusterDrain) (Cluster, error) {
	var out Cluster
	err := c.send(ctx, http.MethodPost, ClusterDrainPath, d, &out)
	return out, err
}

// FenceInCluster has the volumes of a node taken from it.
func (c *Client) FenceInCluster(ctx context.Context, f ClusterFence) (Cluster, error) {
	var out Cluster
	err := c.send(ctx, http.MethodPost, ClusterFencePath, f, &out)
	return out, err
}
