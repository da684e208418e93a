package server

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"lunar/control"
)

func addWhy(api huma.API, s Source) {
	change(api, "get-why", http.MethodGet, control.WhyPath, "What a login of an initiator to a target would come to, and why",
		func(in *control.WhyQuery) (control.Why, error) { return s.Why(*in) })
}
