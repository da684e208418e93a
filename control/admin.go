package control

import (
	"context"
	"fmt"
	"net/http"
	"strings"
)

// The paths of what an administrator does.
const (
	ConfigPath = "/v1/config"
	KickPath   = "/v1/sessions/kick"
	DrainPath  = "/v1/drain"
	RescanPath = "/v1/volumes/{name}/rescan"
	DetachPath = "/v1/volumes/{name}/detach"
	ResyncPath = "/v1/volumes/{name}/resync"
	ScrubPath  = "/v1/volumes/{name}/scrub"
)

// Kick says which sessions are to end: all that every field given matches.
type Kick struct {
	Initiator string `json:"initiator,omitempty" doc:"iSCSI name, or a glob for names."`
	Session   int    `json:"session,omitempty" minimum:"0" maximum:"65535" doc:"TSIH."`
}

// Kicked is what has come of a Kick.
type Kicked struct {
	Sessions int `json:"sessions" doc:"How many were asked to log out."`
}

// Drain keeps initiators away from a portal.
type Drain struct {
	Portal string `json:"portal" minLength:"1" doc:"Name of a portal group, or the address:port of one of its portals."`
	To     string `json:"to,omitempty" doc:"Where logins are sent, as host:port; absent: they are told to try again later."`
	Off    bool   `json:"off,omitempty" doc:"Let initiators in again."`
}

// Drained is what has come of a Drain.
type Drained struct {
	Sessions int      `json:"sessions" doc:"How many were asked to log out."`
	Draining []string `json:"draining" nullable:"false" doc:"What is being drained now, in words."`
}

// Outcome is for the log.
func (d Drained) Outcome() string {
	now := d.Draining
	if len(now) == 0 {
		now = []string{"nothing is drained"}
	}
	return fmt.Sprintf("%s; sessions asked to log out: %d", strings.Join(now, "; "), d.Sessions)
}

// Rescanned is what has come of looking at a volume's size.
type Rescanned struct {
	Before int64 `json:"before" doc:"Size in bytes before."`
	Now    int64 `json:"now" doc:"Size in bytes now."`
}

// Resynced is what has come of taking a mirror's member back.
type Resynced struct {
	Member  string `json:"member" doc:"The member that was dropped, and is used again."`
	Regions int    `json:"regions" doc:"Regions that it lacks, and that are copied to it from now on."`
}

// Scrubbed is what has come of comparing a mirror's members.
type Scrubbed struct {
	Compared int64   `json:"compared" doc:"Bytes of the volume that were compared."`
	Mended   int64   `json:"mended" doc:"Bytes that one member could not read, and that it got from the other one."`
	Regions  int     `json:"regions" doc:"Regions of the volume in which the members differ."`
	Differs  []int64 `json:"differs" nullable:"false" doc:"Where the first of them begin, in bytes."`
	Took     string  `json:"took" doc:"For how long."`
}

// Outcome is for the log.
func (s Scrubbed) Outcome() string { return fmt.Sprintf("compared, %d regions differ", s.Regions) }

// Detach says what becomes of the data that a removed volume's medium does not take.
type Detach struct {
	Discard bool `json:"discard,omitempty" doc:"They are lost; absent: the cache keeps them."`
}

// Detached is what has come of a Detach.
type Detached struct {
	Store string `json:"store" doc:"The file or device that does not have them; empty if it is not known."`
	Kept  int64  `json:"kept" doc:"Bytes that the cache keeps for when the volume is configured again."`
	Lost  int64  `json:"lost" doc:"Bytes that were acknowledged and are lost."`
}

// RunningConfig is the answer of /v1/config.
type RunningConfig struct {
	YAML string `json:"yaml" doc:"The configuration that is running, with all defaults and without secrets."`
	Text string `json:"text" doc:"The same as it was written, with its comments and without secrets; what the cluster's configuration has is added to it."`
}

// Running asks for the configuration that is running.
func (c *Client) Running(ctx context.Context) (string, error) {
	var r RunningConfig
	err := c.Get(ctx, ConfigPath, &r)
	return r.YAML, err
}

// Kick ends sessions.
func (c *Client) Kick(ctx context.Context, k Kick) (int, error) {
	var out Kicked
	err := c.send(ctx, http.MethodPost, KickPath, k, &out)
	return out.Sessions, err
}

// Drain keeps initiators away from a portal.
func (c *Client) Drain(ctx context.Context, d Drain) (Drained, error) {
	var out Drained
	err := c.send(ctx, http.MethodPost, DrainPath, d, &out)
	return out, err
}

// Rescan looks at a volume's size.
func (c *Client) Rescan(ctx context.Context, volume string) (Rescanned, error) {
	var out Rescanned
	err := c.send(ctx, http.MethodPost, pathOf(RescanPath, "{name}", volume), nil, &out)
	return out, err
}

// Resync takes the member of a mirror back that was dropped.
func (c *Client) Resync(ctx context.Context, volume string) (Resynced, error) {
	var out Resynced
	err := c.send(ctx, http.MethodPost, pathOf(ResyncPath, "{name}", volume), nil, &out)
	return out, err
}

// StartScrub compares the members of a mirror, as a job.
func (c *Client) StartScrub(ctx context.Context, volume string) (Job, error) {
	return c.start(ctx, http.MethodPost, pathOf(ScrubPath, "{name}", volume), struct{}{})
}

// Detach gives up a removed volume.
func (c *Client) Detach(ctx context.Context, volume string, d Detach) (Detached, error) {
	var out Detached
	err := c.send(ctx, http.MethodPost, pathOf(DetachPath, "{name}", volume), d, &out)
	return out, err
}
