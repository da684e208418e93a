package control

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// The paths of what an administrator does.
const (
	configPath = "/v1/config"
	kickPath   = "/v1/sessions/kick"
	drainPath  = "/v1/drain"
	rescanPath = "/v1/volumes/{name}/rescan"
	detachPath = "/v1/volumes/{name}/detach"
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

// outcome is for the log.
func (d Drained) outcome() string {
	now := d.Draining
	if len(now) == 0 {
		now = []string{"nothing is drained"}
	}
	return fmt.Sprintf("%s; %d sessions were asked to log out", strings.Join(now, "; "), d.Sessions)
}

// Rescanned is what has come of looking at a volume's size.
type Rescanned struct {
	Before int64 `json:"before" doc:"Size in bytes before."`
	Now    int64 `json:"now" doc:"Size in bytes now."`
}

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

// DetachRequest is the request for one volume. It is exported for the reflection of huma.
type DetachRequest struct {
	VolumePath
	Body Detach
}

// RunningConfig is the answer of /v1/config.
type RunningConfig struct {
	YAML string `json:"yaml" doc:"The configuration that is running, with all defaults and without secrets."`
}

// VolumePath is the path of one volume. It is exported for the reflection of huma.
type VolumePath struct {
	Name string `path:"name" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$" doc:"Name of the volume."`
}

func addAdmin(api huma.API, s Source) {
	get(api, configPath, "The configuration that is running", func() (RunningConfig, error) {
		text, err := s.Running()
		return RunningConfig{text}, err
	})
	change(api, "post-kick", http.MethodPost, kickPath, "Ask initiators to log out, and disconnect those that do not", func(in *struct{ Body Kick }) (Kicked, error) {
		n, err := s.Kick(in.Body)
		return Kicked{n}, err
	})
	change(api, "post-drain", http.MethodPost, drainPath, "Keep initiators away from a portal, or let them in again",
		func(in *struct{ Body Drain }) (Drained, error) { return s.Drain(in.Body) })
	change(api, "post-rescan", http.MethodPost, rescanPath, "Make a volume as large as its file or device is now",
		func(in *VolumePath) (Rescanned, error) { return s.Rescan(in.Name) })
	change(api, "post-detach", http.MethodPost, detachPath, "Give up a removed volume whose data cannot be written",
		func(in *DetachRequest) (Detached, error) { return s.Detach(in.Name, in.Body) })
}

// Running asks for the configuration that is running.
func (c *Client) Running(ctx context.Context) (string, error) {
	var r RunningConfig
	err := c.Get(ctx, configPath, &r)
	return r.YAML, err
}

// Kick ends sessions.
func (c *Client) Kick(ctx context.Context, k Kick) (int, error) {
	var out Kicked
	err := c.send(ctx, http.MethodPost, kickPath, k, &out)
	return out.Sessions, err
}

// Drain keeps initiators away from a portal.
func (c *Client) Drain(ctx context.Context, d Drain) (Drained, error) {
	var out Drained
	err := c.send(ctx, http.MethodPost, drainPath, d, &out)
	return out, err
}

// Rescan looks at a volume's size.
func (c *Client) Rescan(ctx context.Context, volume string) (Rescanned, error) {
	var out Rescanned
	err := c.send(ctx, http.MethodPost, pathOf(rescanPath, "{name}", volume), nil, &out)
	return out, err
}

// Detach gives up a removed volume.
func (c *Client) Detach(ctx context.Context, volume string, d Detach) (Detached, error) {
	var out Detached
	err := c.send(ctx, http.MethodPost, pathOf(detachPath, "{name}", volume), d, &out)
	return out, err
}
