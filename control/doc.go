// Package control is the control API of a running server, as whoever asks it sees it:
// the client, and what requests and answers have. The command line and whatever else
// wants to know something of a server ask here; lunar/control/server answers.
//
// What is served holds no secrets: Status has no place for them.
package control
