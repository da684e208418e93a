package server

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"lunar/control"
)

// FreezeRequest is the request for one volume. It is exported for the reflection of huma.
type FreezeRequest struct {
	VolumePath
	Body control.Freeze

	gone <-chan struct{} // closed when the client's connection is
}

// Resolve implements huma.Resolver.
func (r *FreezeRequest) Resolve(ctx huma.Context) []error {
	r.gone = goneOf(ctx.Context())
	return nil
}

func addFreeze(api huma.API, s Source) {
	changeBy(api, describe("post-freeze", http.MethodPost, control.FreezePath, "Hold the commands of volumes, with everything acknowledged on their files and devices"),
		func(by Asker, in *FreezeRequest) (control.Frozen, error) {
			return s.Freeze(by, in.Name, in.Body, in.gone)
		})
	change(api, "post-thaw", http.MethodPost, control.ThawPath, "Let the commands of a frozen volume go on, and of those that were frozen with it",
		func(in *VolumePath) (control.Thawed, error) { return s.Thaw(in.Name) })
}

// goneOf is closed when the connection of a request is; nil: nobody knows.
func goneOf(ctx context.Context) <-chan struct{} {
	if p := placeOf(ctx); p != nil {
		return p.gone
	}
	return nil
}
