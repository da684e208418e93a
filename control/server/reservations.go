package server

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"lunar/control"
)

func addReservations(api huma.API, s Source) {
	get(api, control.ReservationsPath, "Persistent reservations and RESERVE of all volumes", func() (control.Reservations, error) { return s.Reservations(), nil })
	change(api, "clear-reservations", http.MethodDelete, control.ClearPath, "End all registrations and reservations of a volume; the answer is what there was",
		func(in *VolumePath) (control.VolumeReservations, error) { return s.ClearReservations(in.Name) })
}
