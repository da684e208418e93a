// Package admin has the commands of lunar. Each is a request to the control API of a
// running server and how its answer is printed; adopt, forget and encrypt work on the
// files of a server that has refused to start.
package admin
