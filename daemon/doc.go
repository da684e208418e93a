// Package daemon is the server that tgtd runs: it assembles a target.Server, with
// volumes, cache and scheduler, of a configuration, changes it while initiators use
// it, answers the control API, and keeps in the state directory what a start has to
// know.
package daemon
