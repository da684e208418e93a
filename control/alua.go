package control

import (
	"context"
	"net/http"
)

// The paths of asymmetric access.
const (
	AluaPath      = "/v1/alua"
	AluaGroupPath = "/v1/alua/{group}"
)

// ALUA is how the volumes are reached through each portal group.
type ALUA struct {
	Paths []AccessPath `json:"paths" nullable:"false" doc:"A row for each volume and portal group, by group."`
}

// AccessPath is how one volume is reached through one portal group.
type AccessPath struct {
	Group     string `json:"group" doc:"Name of the portal group."`
	Tag       int    `json:"tag" doc:"Its tag, which is also the target port group and the relative target port identifier."`
	Volume    string `json:"volume" doc:"Name of the volume."`
	State     string `json:"state" doc:"Asymmetric access state."`
	Preferred bool   `json:"preferred" doc:"Initiators are told to prefer it."`
}

// AccessChange changes how volumes are reached through a portal group. Omitted
// fields stay as they are.
type AccessChange struct {
	Volume    string  `json:"volume,omitempty" doc:"Name of the volume; without it: all."`
	State     *string `json:"state,omitempty" enum:"optimized,non-optimized,standby,unavailable,offline,transitioning" doc:"Asymmetric access state."`
	Preferred *bool   `json:"preferred,omitempty" doc:"Initiators are told to prefer it."`
}

// ALUA asks how the volumes are reached.
func (c *Client) ALUA(ctx context.Context) (ALUA, error) {
	var a ALUA
	err := c.Get(ctx, AluaPath, &a)
	return a, err
}

// ChangeAccess changes how volumes are reached through a portal group.
func (c *Client) ChangeAccess(ctx context.Context, group string, change AccessChange) (ALUA, error) {
	var a ALUA
	err := c.send(ctx, http.MethodPatch, pathOf(AluaGroupPath, "{group}", group), change, &a)
	return a, err
}
