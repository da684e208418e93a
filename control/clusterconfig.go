package control

import (
	"context"
	"net/http"
	"strconv"
	"time"
)

// The paths of the configuration that the nodes of a cluster have in common.
const (
	ClusterConfigPath   = "/v1/cluster/config"
	ClusterRevisionPath = "/v1/cluster/config/{revision}"
)

// ClusterFile is a text that is to be the configuration of all nodes.
type ClusterFile struct {
	Name        string   `json:"name" maxLength:"4096" doc:"What messages call it, such as the path of the file."`
	Text        string   `json:"text,omitempty" audit:"-" doc:"The text, in YAML. A secret that the answer of a revision withholds is that which its user has."`
	Rollback    int64    `json:"rollback,omitempty" minimum:"0" doc:"Instead of a text: the revision whose text it is to be."`
	Expected    int64    `json:"expected,omitempty" minimum:"0" doc:"The revision that is to be replaced; absent: whichever there is."`
	DryRun      bool     `json:"dryRun,omitempty" doc:"Ask the nodes what would change, and change nothing."`
	Yes         bool     `json:"yes,omitempty" doc:"Allow changes that end sessions or leave data behind."`
	AllowShrink []string `json:"allowShrink,omitempty" nullable:"false" maxItems:"10000" doc:"Names of volumes that may shrink, and lose the data behind their new end."`
}

// ClusterVerdict is what a revision changes on a node.
type ClusterVerdict struct {
	Node     string   `json:"node" doc:"Name of the node."`
	Reasons  []string `json:"reasons" nullable:"false" doc:"Why it refuses; none: it does not."`
	Changes  []string `json:"changes" nullable:"false" doc:"What changes there, in words."`
	Warnings []string `json:"warnings" nullable:"false" doc:"What is doubtful."`
	Impacts  []Impact `json:"impacts" nullable:"false" doc:"What of that is not harmless, the worst first."`
	Applied  bool     `json:"applied" doc:"It is in force there."`
	Behind   string   `json:"behind,omitempty" doc:"Why it is not in force there yet."`
}

// ClusterApplied is what has come of a ClusterFile.
type ClusterApplied struct {
	Revision  int64            `json:"revision" doc:"The new revision, or which it would be."`
	DryRun    bool             `json:"dryRun,omitempty" doc:"Nothing was changed."`
	Unchanged bool             `json:"unchanged,omitempty" doc:"The text is that of the revision, by which all living nodes go: there is no new one."`
	Nodes     []ClusterVerdict `json:"nodes" nullable:"false" doc:"Nodes that live, by name. Others get it when they come back."`
}

// Outcome is for the log.
func (a ClusterApplied) Outcome() string {
	if a.DryRun {
		return "a dry run: nothing was changed"
	}
	if a.Unchanged {
		return "it was in force: nothing was changed"
	}
	return "revision " + strconv.FormatInt(a.Revision, 10)
}

// ClusterRevision is a revision of the configuration that nodes have in common.
type ClusterRevision struct {
	Revision int64     `json:"revision" doc:"Counts up from 1."`
	At       time.Time `json:"at" doc:"When it came about."`
	By       string    `json:"by" doc:"Who brought it about."`
	Node     string    `json:"node" doc:"At which node."`
	What     string    `json:"what" doc:"By what."`
	Now      bool      `json:"now" doc:"It is in force on the node that is asked."`
	Text     string    `json:"text,omitempty" doc:"The text, without secrets; only where one is asked for."`
}

// ClusterRevisionList is the answer of ClusterConfigPath.
type ClusterRevisionList struct {
	Revisions []ClusterRevision `json:"revisions" nullable:"false" doc:"The last ones, the oldest first."`
}

// ApplyInCluster makes a text the configuration of all nodes.
func (c *Client) ApplyInCluster(ctx context.Context, f ClusterFile) (ClusterApplied, error) {
	var out ClusterApplied
	err := c.send(ctx, http.MethodPost, ClusterConfigPath, f, &out)
	return out, err
}

// ClusterRevisions asks for the last revisions of the cluster's configuration.
func (c *Client) ClusterRevisions(ctx context.Context) ([]ClusterRevision, error) {
	var list ClusterRevisionList
	err := c.Get(ctx, ClusterConfigPath, &list)
	return list.Revisions, err
}

// ClusterRevision asks for one with its text; 0: that which is in force.
func (c *Client) ClusterRevision(ctx context.Context, revision int64) (ClusterRevision, error) {
	var out ClusterRevision
	err := c.Get(ctx, pathOf(ClusterRevisionPath, "{revision}", strconv.FormatInt(revision, 10)), &out)
	return out, err
}
