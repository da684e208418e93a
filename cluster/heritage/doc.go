// Package heritage is what of a volume outlives its owner, such as reservations: one value
// in the cluster's state. An owner reads it after its claim, before it serves, and is the
// only one to change it for as long as that claim stands: each change has the condition that
// the owner's record is the one that was read. What a superseded owner still sends fails.
//
// The package does not know what the value says.
package heritage
