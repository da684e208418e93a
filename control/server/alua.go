package server

import (
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"lunar/control"
)

// AccessGroup is the path of one portal group. It is exported for the reflection
// of huma.
type AccessGroup struct {
	Group string `path:"group" doc:"Name of the portal group."`
}

type changeAccessRequest struct {
	AccessGroup
	Body control.AccessChange
}

func addALUA(api huma.API, s Source) {
	get(api, control.AluaPath, "How the volumes are reached through each portal group", func() (control.ALUA, error) { return s.ALUA(), nil })
	change(api, "get-alua-group", http.MethodGet, control.AluaGroupPath, "How the volumes are reached through one portal group", func(in *AccessGroup) (control.ALUA, error) {
		all := s.ALUA()
		all.Paths = slices.DeleteFunc(all.Paths, func(p control.AccessPath) bool { return p.Group != in.Group })
		return all, nil
	})
	change(api, "patch-alua", http.MethodPatch, control.AluaGroupPath, "Change how volumes are reached through a portal group, until the next start",
		func(in *changeAccessRequest) (control.ALUA, error) { return s.ChangeAccess(in.Group, in.Body) })
}
