package control

import (
	"context"
	"net/http"
)

// The paths of reservations.
const (
	ReservationsPath = "/v1/reservations"
	ClearPath        = "/v1/reservations/{name}"
)

// Reservations is who may use which volumes.
type Reservations struct {
	Volumes []VolumeReservations `json:"volumes" nullable:"false" doc:"The volumes, by name."`
}

// VolumeReservations is what is reserved of one volume, and for whom.
type VolumeReservations struct {
	Volume        string         `json:"volume" doc:"Name of the volume."`
	Node          string         `json:"node,omitempty" doc:"Of a volume with owners: the node that serves it, which alone knows the rest. It is missing while that is not decided, and of other volumes."`
	Elsewhere     bool           `json:"elsewhere,omitempty" doc:"This node does not serve the volume: the rest is not known here."`
	Type          string         `json:"type" doc:"Type of the persistent reservation; none: there is no reservation."`
	Generation    uint32         `json:"generation" doc:"PRGENERATION."`
	Persistent    bool           `json:"persistent" doc:"It survives a loss of power (APTPL)."`
	Registrations []Registration `json:"registrations" nullable:"false" doc:"Registered I_T nexuses, in the order in which they came."`
	Reserve       string         `json:"reserve,omitempty" doc:"Initiator port that holds the volume by RESERVE of SPC-2."`
}

// Registration is a registered I_T nexus.
type Registration struct {
	Initiator string `json:"initiator" doc:"Initiator port name: iSCSI name and ISID."`
	Target    string `json:"target" doc:"iSCSI name of the target."`
	Group     int    `json:"group" doc:"Tag of the portal group."`
	Key       string `json:"key" doc:"Reservation key, hexadecimal."`
	Holder    bool   `json:"holder" doc:"It holds the reservation."`
}

// Reservations asks who may use which volumes.
func (c *Client) Reservations(ctx context.Context) (Reservations, error) {
	var r Reservations
	err := c.Get(ctx, ReservationsPath, &r)
	return r, err
}

// ClearReservations ends all registrations and reservations of a volume, and
// returns what there was.
func (c *Client) ClearReservations(ctx context.Context, volume string) (VolumeReservations, error) {
	var r VolumeReservations
	err := c.send(ctx, http.MethodDelete, pathOf(ClearPath, "{name}", volume), nil, &r)
	return r, err
}
