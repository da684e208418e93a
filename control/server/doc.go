// Package server serves the control API of a running server: HTTP with JSON on a unix
// socket, described at /openapi.json, and Prometheus metrics at /metrics.
//
// The package knows nothing of targets or caches. The daemon gives it a Source,
// whose Status is plain values; everything that is served is made of these, at
// the time of the request, so that the data path counts nothing twice. A new
// part of the API is a row of resources and, where it changes something, a
// method of Source.
package server
