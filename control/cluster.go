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
	Name     string                `json:"name" doc:"Name of the cluster."`
	Node     string                `json:"node" doc:"The node that tells this."`
	Joined   bool                  `json:"joined" metric:"joined" doc:"Whether this node has its place in the cluster: without, it takes no volumes over, and reads pass its cache by."`
	Why      string                `json:"why,omitempty" doc:"Why it has none."`
	Lease    float64               `json:"lease_seconds" metric:"lease_seconds" doc:"For how long cached data are served if the cluster does not answer any more; 0: they are not."`
	Etcd     bool                  `json:"etcd" metric:"etcd_answers" doc:"Whether etcd answers this node; without a majority of its members it answers nobody."`
	Answered float64               `json:"etcd_answered_seconds" metric:"etcd_answered_seconds" doc:"Time since etcd has renewed this node's lease last, or since the node began."`
	Full     bool                  `json:"full" metric:"state_full" doc:"Whether the cluster's state in etcd has reached its quota, as of the last 10 seconds: nobody takes volumes over, and nothing of it is changed."`
	Revision int64                 `json:"revision" metric:"config_revision" doc:"Revision of the cluster's configuration that is in force here; 0: none."`
	Newest   int64                 `json:"newest_revision" metric:"config_newest_revision" doc:"The newest revision that a living node goes by."`
	Behind   string                `json:"behind,omitempty" doc:"Why the newest revision is not in force here."`
	Nodes    []ClusterNode         `json:"nodes" nullable:"false" doc:"Nodes that live or are heard, and those that may own volumes, by name."`
	Volumes  []ClusterVolume       `json:"volumes" nullable:"false" doc:"Volumes with owners, by name."`
	Promise  *ClusterPromiseTotals `json:"promise,omitempty" doc:"What is promised over all nodes; absent: no node keeps it, or nothing was heard of that one lately."`
}

// The states of a node.
const (
	NodeOK      = "ok"
	NodeAway    = "away"
	NodeSilent  = "silent"
	NodeCut     = "cut"
	NodeDrained = "drained"
	NodeBehind  = "behind"
)

// NodeStates are all of them.
var NodeStates = []string{NodeOK, NodeAway, NodeSilent, NodeCut, NodeDrained, NodeBehind}

// ClusterNode is a node that lives or is heard, or may own volumes.
type ClusterNode struct {
	Name        string          `json:"name" doc:"Name of the node."`
	State       string          `json:"state" enum:"ok,away,silent,cut,drained,behind" doc:"ok; away: it does not live, or reaches neither the cluster nor this node; silent: it was not heard a moment ago; cut: it is heard over links, and not by etcd; drained: it is to own no volumes; behind: its configuration is not the cluster's newest."`
	Incarnation string          `json:"incarnation,omitempty" doc:"Its process, unlike all before; absent: it does not live."`
	Revision    int64           `json:"revision" doc:"Revision of the cluster's configuration that it goes by; 0: none, or not known."`
	Behind      string          `json:"behind,omitempty" doc:"Why that is not the newest."`
	Version     string          `json:"version" doc:"Version of Lunar that it runs."`
	Stranger    bool            `json:"stranger" doc:"Its volumes with owners have other serial numbers than on other nodes: hosts take them for other disks."`
	Since       time.Time       `json:"since,omitzero" doc:"Since when this node sees its process."`
	Heard       bool            `json:"heard" doc:"Whether etcd has heard it a moment ago; without, its volumes are about to be taken over, unless links hear it."`
	Silent      float64         `json:"silent_seconds" doc:"For how long etcd has not heard it; 0: it does, or the node does not live."`
	Lease       *ClusterLease   `json:"lease,omitempty" doc:"Its lease, as it was when the node was heard last over a link; absent: it is not known."`
	Link        *ClusterLink    `json:"link,omitempty" doc:"How this node reaches it; absent: it is this node, or there are no links."`
	Hears       []string        `json:"hears" nullable:"false" doc:"Nodes that it hears over its links, as it says."`
	Draining    bool            `json:"draining" doc:"It is to own no volumes."`
	Portals     []string        `json:"portals" nullable:"false" doc:"Its portals, each with the tag of its group."`
	Volumes     []string        `json:"volumes" nullable:"false" doc:"Volumes that it owns."`
	Unable      []ClusterUnable `json:"unable" nullable:"false" doc:"Volumes that it could not open, by name: it is not given them."`
}

// ClusterUnable is a volume that a node could not open.
type ClusterUnable struct {
	Volume string `json:"volume" doc:"Name of the volume."`
	Why    string `json:"why" doc:"Why the node could not open it: what it lacks."`
}

// ClusterLease is a node's lease: as long as it lasts, the node may serve cached data, and nobody
// else takes cached volumes over.
type ClusterLease struct {
	Age  float64 `json:"age_seconds" doc:"Time since etcd has renewed it last."`
	Left float64 `json:"left_seconds" doc:"For how long it still lasts if it is not renewed; 0: it is over."`
}

// ClusterLink is how a node is reached over its links, and what was relayed over them.
type ClusterLink struct {
	Address   string   `json:"address" doc:"Where the other one is reached."`
	Up        bool     `json:"up" metric:"up" doc:"Whether there is a link to another node."`
	Why       string   `json:"why,omitempty" doc:"What keeps it from being reached."`
	Heard     *float64 `json:"heard_seconds,omitempty" doc:"Time since it was heard over a link; absent: no connection is there over which it is heard."`
	RoundTrip float64  `json:"round_trip_seconds" metric:"round_trip_seconds" doc:"How long the last beat to another node and its answer took."`
	Queued    int64    `json:"queued_bytes" metric:"queued_bytes" doc:"Bytes that wait to be sent to another node."`
	Relayed   uint64   `json:"relayed" metric:"relayed_commands_total" doc:"Commands of sessions here that were relayed to another node, which owns their volumes."`
	Relaying  int64    `json:"relaying" metric:"relaying_commands" doc:"Commands that were relayed to another node and are not answered yet."`
	Unknown   uint64   `json:"unknown" metric:"relayed_unknown_total" doc:"Commands that were relayed to another node and whose answer got lost with the connection: their initiators send them again."`
	Served    uint64   `json:"served" metric:"served_commands_total" doc:"Commands of sessions at another node that it has relayed to this one."`
	Serving   int64    `json:"serving" metric:"serving_commands" doc:"Commands that another node has relayed to this one and that are not answered yet."`
}

// ClusterVolume is a volume with owners.
type ClusterVolume struct {
	Name   string          `json:"name" doc:"Name of the volume."`
	Owner  string          `json:"owner" doc:"Node that owns it, or did last; empty: none did."`
	State  string          `json:"state" doc:"owned; claiming: the owner is taking it over; free: its last owner has closed it; none: nobody ever had it."`
	Since  time.Time       `json:"since,omitzero" doc:"When its owner has claimed it, by the owner's clock."`
	Epoch  uint64          `json:"epoch" doc:"Grows with each change of its owner."`
	InFlux bool            `json:"in_flux" metric:"in_flux" doc:"Whether a volume with owners has none that lives and serves it: commands wait until it is decided."`
	Here   string          `json:"here,omitempty" doc:"What this node is doing with it: follower, suspecting, fencing, opening, owner or draining; absent: it is not configured here."`
	Owners []string        `json:"owners" nullable:"false" doc:"Nodes that may own it, by this node's configuration."`
	Unable []string        `json:"unable" nullable:"false" doc:"Those of them that could not open it, and are not given it: the nodes say why."`
	Access []ClusterAccess `json:"access" nullable:"false" doc:"What hosts are told of their paths to each node; commands wait while it is in flux."`
	Size   int64           `json:"size_bytes" doc:"Size of the volume."`
}

// OwnedBy reports whether a node owns the volume.
func (v *ClusterVolume) OwnedBy(node string) bool { return v.Owner == node && v.State == "owned" }

// ClusterAccess is the access state of a node's paths.
type ClusterAccess struct {
	Node  string `json:"node" doc:"Name of the node."`
	State string `json:"state" doc:"The best of its portal groups: optimized, non-optimized, standby or unavailable."`
}

// ClusterPromiseTotals are sums over all that is promised over the nodes, as the node that keeps it
// tells them once a second.
type ClusterPromiseTotals struct {
	Controller string              `json:"controller" doc:"The node that keeps it: the nodes elect it."`
	Term       uint64              `json:"term" doc:"Number of its election: later ones have higher numbers."`
	Elected    float64             `json:"elected_seconds" metric:"elected_seconds" doc:"Time since the node was elected that keeps the promises over all nodes."`
	Promises   int64               `json:"promises" metric:"entities" doc:"Groups, initiators and uses that have a reservation or a limit over all nodes."`
	Reserved   int64               `json:"reserved_tokens" metric:"reserved_tokens" doc:"Reserved over all nodes, tokens per second."`
	Limit      int64               `json:"limit_tokens" metric:"limit_tokens" doc:"Sum of all limits over all nodes, also of those inside others, tokens per second."`
	Served     int64               `json:"served_tokens" metric:"served_tokens" doc:"Tokens that all nodes served to initiators in the last second."`
	Missed     int64               `json:"missed" metric:"missed" doc:"Reservations over all nodes that were not kept in the last second."`
	Nodes      []ClusterNodeTotals `json:"nodes" nullable:"false" doc:"Nodes that report."`
	Silent     []string            `json:"silent" nullable:"false" doc:"Nodes that live and do not report: each is taken to have its even part of all limits."`
}

// ClusterNodeTotals is a node's part of them.
type ClusterNodeTotals struct {
	Node     string `json:"node" doc:"Name of the node."`
	Reserved int64  `json:"reserved_tokens" metric:"reserved_tokens" doc:"Tokens that a node has left of reservations, in this second."`
	Served   int64  `json:"served_tokens" metric:"served_tokens" doc:"Tokens that a node served to initiators in the last second."`
	Capacity int64  `json:"capacity_tokens" metric:"capacity_tokens" doc:"What the devices can do that a node uses, tokens per second; one that nodes share counts with each."`
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
