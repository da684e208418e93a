// Package control is the client's side of a running server's control API: the client,
// and the types of requests and answers. The command line and other clients use it;
// lunar/control/server answers.
//
// Answers hold no secrets: Status has no place for them.
package control
