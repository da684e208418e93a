// Package login is the login phase of RFC 7143 as pure state machines: stage
// transitions, text key negotiation and CHAP (sections 6, 11.12, 12 and 13).
// It has no socket, clock or goroutine, and takes its randomness from the
// caller.
//
// A connection makes one [Negotiation] and gives each Login Request to
// [Negotiation.Step], with the bytes of its data segment. Step returns the
// [Response] to send or an [*Error], whose status the caller sends before it
// closes the connection. When Response.Done is set the connection enters the
// full feature phase with Response.Result. StatSN, CmdSN and TSIH stay with
// the caller, as do the deadline of the whole login and the limit on the
// number of connections in it.
//
// The table in keys.go says everything about every key: its kind, its range,
// where it may be used and where its result goes. The caller's [Access] decides
// who may log in to which target, and has the secrets.
package login
