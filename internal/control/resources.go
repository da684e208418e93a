package control

import (
	"context"

	"github.com/danielgtaylor/huma/v2"
)

// resources are the parts of the API: each adds its operations.
var resources = []func(huma.API, Source){
	addStatus, addSessions, addVolumes, addCache, addQoS, addALUA, addReservations, addAdmin,
}

// answer is a response with a JSON body.
type answer[T any] struct{ Body T }

// get adds a read-only operation.
func get[T any](api huma.API, path, summary string, read func() (T, error)) {
	huma.Register(api, huma.Operation{
		OperationID: "get" + path[len("/v1"):], Method: "GET", Path: path, Summary: summary,
	}, func(context.Context, *struct{}) (*answer[T], error) {
		body, err := read()
		if err != nil {
			return nil, err
		}
		return &answer[T]{body}, nil
	})
}

func addStatus(api huma.API, s Source) {
	get(api, "/v1/status", "Everything there is to tell", func() (Status, error) { return s.Status(), nil })
}

// SessionList is the answer of /v1/sessions.
type SessionList struct {
	Sessions []Session `json:"sessions" nullable:"false" doc:"Sessions that are open, by TSIH."`
}

func addSessions(api huma.API, s Source) {
	get(api, "/v1/sessions", "Sessions that are open", func() (SessionList, error) {
		return SessionList{s.Status().Sessions}, nil
	})
}

// VolumeList is the answer of /v1/volumes.
type VolumeList struct {
	Volumes []Volume `json:"volumes" nullable:"false" doc:"All volumes, in the order of the configuration."`
}

func addVolumes(api huma.API, s Source) {
	get(api, "/v1/volumes", "Volumes with their counters", func() (VolumeList, error) {
		return VolumeList{s.Status().Volumes}, nil
	})
}

func addCache(api huma.API, s Source) {
	get(api, "/v1/cache", "The block cache", func() (Cache, error) {
		if c := s.Status().Cache; c != nil {
			return *c, nil
		}
		return Cache{}, huma.Error404NotFound("this server has no cache: cache.size of its configuration is 0")
	})
}
