// Package state is the state directory of a server: who may use it, the server's
// identity, and the small sealed files that a start decides by.
package state
