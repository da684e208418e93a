package server

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"lunar/control"
)

// DetachRequest is the request for one volume. It is exported for the reflection of huma.
type DetachRequest struct {
	VolumePath
	Body control.Detach
}

// VolumePath is the path of one volume. It is exported for the reflection of huma.
type VolumePath struct {
	Name string `path:"name" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$" doc:"Name of the volume."`
}

func addAdmin(api huma.API, s Source) {
	get(api, control.ConfigPath, "The configuration that is running", func() (control.RunningConfig, error) {
		return s.Running()
	})
	change(api, "post-kick", http.MethodPost, control.KickPath, "Ask initiators to log out, and disconnect those that do not", func(in *struct{ Body control.Kick }) (control.Kicked, error) {
		n, err := s.Kick(in.Body)
		return control.Kicked{Sessions: n}, err
	})
	change(api, "post-drain", http.MethodPost, control.DrainPath, "Keep initiators away from a portal, or let them in again",
		func(in *struct{ Body control.Drain }) (control.Drained, error) { return s.Drain(in.Body) })
	get(api, control.DrainPath, "What is being drained", func() (control.Drained, error) { return s.Drains(), nil })
	changeBy(api, describe("post-rescan", http.MethodPost, control.RescanPath, "Make a volume as large as its file or device is now"),
		func(by Asker, in *VolumePath) (control.Rescanned, error) { return s.Rescan(by, in.Name) })
	changeBy(api, describe("post-resync", http.MethodPost, control.ResyncPath, "Take the member of a mirror back that was dropped"),
		func(by Asker, in *VolumePath) (control.Resynced, error) { return s.Resync(by, in.Name) })
	changeBy(api, describe("post-scrub", http.MethodPost, control.ScrubPath, "Compare the members of a mirror"),
		func(by Asker, in *VolumePath) (control.Scrubbed, error) { return s.Scrub(by, in.Name) })
	changeBy(api, describe("post-detach", http.MethodPost, control.DetachPath, "Give up a removed volume whose data cannot be written"),
		func(by Asker, in *DetachRequest) (control.Detached, error) { return s.Detach(by, in.Name, in.Body) })
}
