// Package wire is what goes over a connection between two nodes: frames, and calls with answers
// in both directions of the data. It knows of one connection alone; package link makes them.
package wire
