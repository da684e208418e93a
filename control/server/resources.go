package server

import (
	"github.com/danielgtaylor/huma/v2"

	"lunar/control"
)

// resources are the parts of the API: each adds its operations.
var resources = []func(huma.API, Source){
	addStatus, addSessions, addVolumes, addTargets, addPortalGroups, addObjects, addCache, addQoS, addALUA, addCluster, addClusterConfig, addReservations, addLatency, addAdmin,
	addWhy, addFreeze, addMoves, addSnapshots, addGenerations,
}

func addStatus(api huma.API, s Source) {
	get(api, "/v1/status", "Everything there is to tell", func() (control.Status, error) { return s.Status(), nil })
}

// SessionList is the answer of /v1/sessions.
type SessionList struct {
	Sessions []control.Session `json:"sessions" nullable:"false" doc:"Sessions that are open, by TSIH."`
}

func addSessions(api huma.API, s Source) {
	get(api, "/v1/sessions", "Sessions that are open", func() (SessionList, error) {
		return SessionList{s.Status().Sessions}, nil
	})
}

func addCache(api huma.API, s Source) {
	get(api, "/v1/cache", "The block cache", func() (control.Cache, error) {
		if c := s.Status().Cache; c != nil {
			return *c, nil
		}
		return control.Cache{}, huma.Error404NotFound("this server has no cache: cache.size of its configuration is 0")
	})
}
