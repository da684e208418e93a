// Package heritage is what of a volume outlives its owner, such as reservations, or the header
// of its encryption: values in the cluster's state, each of a key of its own. An owner reads
// one after its claim, before it serves, and is the only one to change it for as long as that
// claim stands: each change has the condition that the owner's record is the one that was read.
// What a superseded owner still sends fails.
//
// The package does not know what a value says.
package heritage
