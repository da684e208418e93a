package control

import (
	"context"
	"net/http"
	"time"
)

// The paths of freezing and thawing volumes.
const (
	FreezePath = "/v1/volumes/{name}/freeze"
	ThawPath   = "/v1/volumes/{name}/thaw"
)

// The bounds of Freeze.Deadline.
const (
	DefaultFreeze = 20 * time.Second // initiators give up a command after 30 s or more
	MaxFreeze     = 5 * time.Minute
)

// Freeze says for how long a volume is frozen, and with what.
type Freeze struct {
	With     []string `json:"with,omitempty" nullable:"false" maxItems:"1000" doc:"Further volumes, of which a copy is to be of the same moment."`
	Deadline string   `json:"deadline,omitempty" doc:"After which the volumes thaw by themselves, such as 30s; at most 5m. Absent: 20s."`
	Attended bool     `json:"attended,omitempty" doc:"They thaw as well when the client closes its connection, or asks nothing on it for a minute."`
}

// Frozen is what has come of a Freeze.
type Frozen struct {
	Volumes []string  `json:"volumes" nullable:"false" doc:"All that are frozen."`
	At      time.Time `json:"at" doc:"The moment of which a copy is: everything acknowledged before is on the files and devices."`
	Until   time.Time `json:"until" doc:"When they thaw by themselves."`
}

// Thawed is what has come of thawing a volume.
type Thawed struct {
	Volumes []string  `json:"volumes" nullable:"false" doc:"All that were frozen together, and go on now."`
	At      time.Time `json:"at" doc:"When they were frozen."`
	Held    string    `json:"held" doc:"For how long commands were held."`
}

// FrozenVolume is a volume that is frozen.
type FrozenVolume struct {
	At    time.Time `json:"at" doc:"Since when."`
	Until time.Time `json:"until" doc:"When it thaws by itself."`
}

// Freeze freezes a volume, and others with it.
func (c *Client) Freeze(ctx context.Context, volume string, f Freeze) (Frozen, error) {
	var out Frozen
	err := c.send(ctx, http.MethodPost, pathOf(FreezePath, "{name}", volume), f, &out)
	return out, err
}

// Thaw thaws a volume, and those that were frozen with it.
func (c *Client) Thaw(ctx context.Context, volume string) (Thawed, error) {
	var out Thawed
	err := c.send(ctx, http.MethodPost, pathOf(ThawPath, "{name}", volume), nil, &out)
	return out, err
}
